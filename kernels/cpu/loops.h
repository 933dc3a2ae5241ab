// Splits the CPU's plain loops over threads, and tells lanes from nchw.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/cpu_device.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

/// Elements that are worth another thread's wake-up.
inline constexpr std::int64_t kChunk = 4096;
constexpr std::int64_t chunks_of(std::int64_t elements) { return (elements + kChunk - 1) / kChunk; }

/// Calls f(i) for every i in [0, n), in any order and on several threads: each i must be
/// independent of the others (reading and writing element i of the same memory is fine).
template <class F>
void for_each_element(CpuStream& stream, std::int64_t n, F f) {
  stream.parallel_for(chunks_of(n), [n, f](std::int64_t first, std::int64_t last, int) {
    const std::int64_t end = std::min(n, last * kChunk);
#pragma omp simd
    for (std::int64_t i = first * kChunk; i < end; ++i) f(i);
  });
}

/// y[i] = f(x[i]...) for every stored element. y may be the memory of an input.
template <class F, class... Inputs>
void map(CpuStream& stream, const View& y, F f, const Inputs&... x) {
  const auto loop = [&stream, f, n = y.storage()](float* to, const auto*... from) {
    for_each_element(stream, n, [=](std::int64_t i) { to[i] = f(from[i]...); });
  };
  loop(y.f32(), ConstView(x).f32()...);
}

/// Calls f(i) for every i in [0, n), each on one thread.
template <class F>
void for_each_item(CpuStream& stream, std::int64_t n, F f) {
  stream.parallel_for(n, [f](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) f(i);
  });
}

/// Throws ContractError for nhwc, which no CPU's kernel has.
inline bool in_lanes(const ConstView& view, At at = At::current()) {
  if (view.layout() == Layout::nhwc) {
    throw ContractError(
        describe(view) + ": the layout nhwc is for GPUs; use --layout lanes or nchw", at);
  }
  return view.layout() == Layout::lanes;
}

}  // namespace ringlet::impl
