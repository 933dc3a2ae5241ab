#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/layouts.h"
#include "kernels/cuda/normalize.h"
#include "kernels/grid/normalize.h"

namespace ringlet::impl {

void normalize_forward(CudaStream& stream, const Normalization& normalization, const ConstView& x,
                       const View& y) {
  require_nchw("normalize_forward", y);
  CudaGrid launcher(stream);
  grid::normalize_forward(launcher, normalization, x, y);
}

/// Floor: reads 4 N bytes, writes 4 N.
void relayout(CudaStream& stream, const ConstView& x, const View& y) {
  constexpr const char* kName = "relayout";
  require_nchw(kName, x);
  require_nchw(kName, y);
  if (x.bytes() == 0) return;
  check_cuda(cudaMemcpyAsync(y.data(), x.data(), static_cast<std::size_t>(x.bytes()),
                             cudaMemcpyDeviceToDevice, stream.handle()),
             kName);
}

}  // namespace ringlet::impl
