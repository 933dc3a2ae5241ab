#include "kernels/cuda/nan_probe.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/implementations.h"
#include "kernels/memory.h"
#include "kernels/narrow_floats.h"

namespace ringlet {

namespace {

/// A NaN, and so is each half of it as bf16 and f16.
constexpr auto kNaNs = std::bit_cast<float>(0x7FFF7FFFU);

}  // namespace

bool lets_nan_through(CudaStream& stream, std::span<const std::int64_t> input_counts,
                      const ProbedOutput& result,
                      const std::function<bool(std::span<void* const>, void*)>& launch) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream.handle(), &status), "cudaStreamIsCapturing");
  if (status != cudaStreamCaptureStatusNone) return false;
  std::vector<Tensor> inputs;
  std::vector<void*> addresses;
  for (const std::int64_t count : input_counts) {
    inputs.emplace_back(stream.device(), Shape{count});
    addresses.push_back(inputs.back().view().data());
    impl::fill(stream, kNaNs, inputs.back());
  }
  const Tensor output(stream.device(), Shape{result.count});
  impl::fill(stream, 0, output.view());
  const bool launched = launch(addresses, output.view().data());
  std::uint32_t first = 0;
  impl::copy_to_host(stream, output.view().slice(0, 1), &first);  // waits
  if (!is_narrow(result.dtype)) return launched && std::isnan(std::bit_cast<float>(first));
  const auto bits = static_cast<std::uint16_t>(first);
  const bool is_bf16 = result.dtype == DType::bf16;
  return launched && std::isnan(is_bf16 ? widen(BFloat16{bits}) : widen(Half{bits}));
}

}  // namespace ringlet
