#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/elementwise.h"
#include "kernels/grid/elementwise.h"

namespace ringlet::impl {

void fill(CudaStream& stream, float value, const View& y) {
  CudaGrid launcher(stream);
  grid::fill(launcher, value, y);
}

void accumulate(CudaStream& stream, const ConstView& x, const View& y) {
  CudaGrid launcher(stream);
  grid::accumulate(launcher, x, y);
}

void add(CudaStream& stream, const ConstView& a, const ConstView& b, const View& y) {
  CudaGrid launcher(stream);
  grid::add(launcher, a, b, y);
}

void scale(CudaStream& stream, float alpha, const ConstView& x, float beta, const View& y) {
  CudaGrid launcher(stream);
  grid::scale(launcher, alpha, x, beta, y);
}

/// Floor: reads N bytes, writes N.
void copy(CudaStream& stream, const ConstView& x, const View& y) {
  if (x.bytes() == 0) return;
  check_cuda(cudaMemcpyAsync(y.data(), x.data(), static_cast<std::size_t>(x.bytes()),
                             cudaMemcpyDeviceToDevice, stream.handle()),
             "copy");
}

}  // namespace ringlet::impl
