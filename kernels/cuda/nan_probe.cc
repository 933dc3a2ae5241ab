#include "kernels/cuda/nan_probe.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/implementations.h"
#include "kernels/memory.h"

namespace ringlet {

bool lets_nan_through(CudaStream& stream, std::span<const std::int64_t> input_counts,
                      std::int64_t output_count,
                      const std::function<bool(std::span<void* const>, void*)>& launch) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream.handle(), &status), "cudaStreamIsCapturing");
  if (status != cudaStreamCaptureStatusNone) return false;
  std::vector<Tensor> inputs;
  std::vector<void*> addresses;
  for (const std::int64_t count : input_counts) {
    inputs.emplace_back(stream.device(), Shape{count});
    addresses.push_back(inputs.back().view().data());
    impl::fill(stream, std::numeric_limits<float>::quiet_NaN(), inputs.back());
  }
  const Tensor output(stream.device(), Shape{output_count});
  impl::fill(stream, 0, output.view());
  const bool launched = launch(addresses, output.view().data());
  float first = 0;
  impl::copy_to_host(stream, output.view().slice(0, 1), &first);  // waits
  return launched && std::isnan(first);
}

}  // namespace ringlet
