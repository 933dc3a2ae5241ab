#include "kernels/cuda/host_copy.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_error.h"

namespace ringlet::impl {

void copy_from_host(CudaStream& stream, const void* host, const View& y) {
  if (y.bytes() == 0) return;
  check_cuda(cudaMemcpyAsync(y.data(), host, static_cast<std::size_t>(y.bytes()),
                             cudaMemcpyHostToDevice, stream.handle()),
             "copy_from_host");
  // Pinned memory is read in the stream's turn, and of ordinary memory CUDA only says that it might
  // have been read by now.
  check_cuda(cudaStreamSynchronize(stream.handle()), "copy_from_host");
}

void copy_to_host(CudaStream& stream, const ConstView& x, void* host) {
  if (x.bytes() == 0) return;
  check_cuda(cudaMemcpyAsync(host, x.data(), static_cast<std::size_t>(x.bytes()),
                             cudaMemcpyDeviceToHost, stream.handle()),
             "copy_to_host");
  check_cuda(cudaStreamSynchronize(stream.handle()), "copy_to_host");
}

}  // namespace ringlet::impl
