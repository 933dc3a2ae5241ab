#include "bench/kernels/kernel_calls.h"

#include <cstdint>

namespace ringlet::bench {

double KernelCalls::flops() const {
  double total = 0;
  for (const KernelCall& call : calls) total += call.flops;
  return total;
}

void KernelCalls::run() const {
  for (const KernelCall& call : calls) call.run();
}

namespace {

void fill_with_noise(const View& view) {
  std::uint32_t state = 12345;
  for (std::int64_t i = 0; i < view.storage(); ++i) {
    state = state * 1664525U + 1013904223U;
    view.f32()[i] = static_cast<float>(state >> 8U) * 0x1p-24F - 0.5F;
  }
}

}  // namespace

void KernelCallsBuilder::add(const char* name, double flops, std::function<void()> run) {
  calls_.calls.push_back({name, flops, std::move(run)});
}

View KernelCallsBuilder::tensor(const Shape& shape, Layout layout, DType dtype) {
  calls_.tensors.push_back(std::make_unique<Tensor>(device_, shape, dtype, layout));
  const View& view = calls_.tensors.back()->view();
  const bool has_memory = device_.id().kind != DeviceKind::meta;
  if (has_memory && dtype == DType::f32) fill_with_noise(view);
  return view;
}

}  // namespace ringlet::bench
