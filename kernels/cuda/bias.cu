#include "kernels/cuda/bias.h"
#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/layouts.h"
#include "kernels/grid/bias.h"

namespace ringlet::impl {

void bias_forward(CudaStream& stream, const ConstView& x, const ConstView& b, const View& y) {
  require_nchw("bias_forward", x);
  CudaGrid launcher(stream);
  grid::bias_forward(launcher, x, b, y);
}

void bias_backward(CudaStream& stream, const ConstView& dy, float beta, const View& db) {
  require_nchw("bias_backward", dy);
  CudaGrid launcher(stream);
  grid::bias_backward(launcher, dy, beta, db);
}

}  // namespace ringlet::impl
