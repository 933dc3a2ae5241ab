#include "kernels/cuda/async_copy.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_error.h"

namespace ringlet::impl {

// From and to pinned memory cudaMemcpyAsync returns before it has copied.

void enqueue_copy_from_host(CudaStream& stream, const void* host, const View& y) {
  check_cuda(cudaMemcpyAsync(y.data(), host, static_cast<std::size_t>(y.bytes()),
                             cudaMemcpyHostToDevice, stream.handle()),
             "cudaMemcpyAsync to the device");
}

void enqueue_copy_to_host(CudaStream& stream, const ConstView& x, void* host) {
  check_cuda(cudaMemcpyAsync(host, x.data(), static_cast<std::size_t>(x.bytes()),
                             cudaMemcpyDeviceToHost, stream.handle()),
             "cudaMemcpyAsync to the host");
}

}  // namespace ringlet::impl
