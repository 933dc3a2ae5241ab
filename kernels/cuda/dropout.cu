#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/layouts.h"
#include "kernels/grid/dropout.h"

namespace ringlet::impl {

void dropout_forward(CudaStream& stream, const DropoutSpec& spec, const ConstView& x,
                     const View& y) {
  require_nchw("dropout_forward", x);
  CudaGrid launcher(stream);
  grid::dropout_forward(launcher, spec, x, y);
}

void dropout_backward(CudaStream& stream, const DropoutSpec& spec, const ConstView& dy, float beta,
                      const View& dx) {
  require_nchw("dropout_backward", dy);
  CudaGrid launcher(stream);
  grid::dropout_backward(launcher, spec, dy, beta, dx);
}

}  // namespace ringlet::impl
