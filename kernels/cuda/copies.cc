// CUDA's implementations of what only moves bytes: of kernels/host_copy.h, of the
// copies in elementwise.h, and of relayout() in normalize.h, which may have to transpose.
#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/views.h"

namespace ringlet::impl {

namespace {

/// In stream order. From and to pinned memory it returns before it has copied.
void enqueue_bytes(CudaStream& stream, const void* from, void* to, std::int64_t bytes,
                   cudaMemcpyKind kind, const char* name, At at = At::current()) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream.handle()),
             name, at);
}

}  // namespace

void enqueue_copy_from_host(CudaStream& stream, const void* host, const View& y) {
  enqueue_bytes(stream, host, y.data(), y.bytes(), cudaMemcpyHostToDevice,
                "cudaMemcpyAsync to the device");
}

void enqueue_copy_to_host(CudaStream& stream, const ConstView& x, void* host) {
  enqueue_bytes(stream, x.data(), host, x.bytes(), cudaMemcpyDeviceToHost,
                "cudaMemcpyAsync to the host");
}

void copy_from_host(CudaStream& stream, const void* host, const View& y) {
  if (y.bytes() == 0) return;
  enqueue_bytes(stream, host, y.data(), y.bytes(), cudaMemcpyHostToDevice, "copy_from_host");
  // Pinned memory is read in the stream's turn, and of ordinary memory CUDA only says that it might
  // have been read by now.
  check_cuda(cudaStreamSynchronize(stream.handle()), "copy_from_host");
}

void copy_to_host(CudaStream& stream, const ConstView& x, void* host) {
  if (x.bytes() == 0) return;
  enqueue_bytes(stream, x.data(), host, x.bytes(), cudaMemcpyDeviceToHost, "copy_to_host");
  check_cuda(cudaStreamSynchronize(stream.handle()), "copy_to_host");
}

/// Over NVLink or PCIe where the GPUs see each other, else through the host; in stream order.
void copy_from_device(CudaStream& stream, DeviceId from, const ConstView& x, const View& y) {
  if (x.bytes() == 0) return;
  check_cuda(cudaMemcpyPeerAsync(y.data(), stream.device().id().index, x.data(), from.index,
                                 static_cast<std::size_t>(x.bytes()), stream.handle()),
             "cudaMemcpyPeerAsync");
}

/// Floor: reads N bytes, writes N.
void copy(CudaStream& stream, const ConstView& x, const View& y) {
  enqueue_bytes(stream, x.data(), y.data(), x.bytes(), cudaMemcpyDeviceToDevice, "copy");
}

/// Floor: reads 4 N bytes, writes 4 N.
void relayout(CudaStream& stream, const ConstView& x, const View& y) {
  constexpr const char* kName = "relayout";
  require_gpu_layout(kName, x);
  require_gpu_layout(kName, y);
  if (x.layout() == y.layout() || is_alike_in_nhwc(y.shape())) {
    enqueue_bytes(stream, x.data(), y.data(), x.bytes(), cudaMemcpyDeviceToDevice, kName);
  } else {
    change_channels(stream, x, 0, y);
  }
}

}  // namespace ringlet::impl
