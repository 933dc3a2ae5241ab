#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/layouts.h"
#include "kernels/cuda/pool2d.h"
#include "kernels/grid/pool2d.h"

namespace ringlet::impl {

void avg_pool2d_forward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y) {
  require_nchw("avg_pool2d_forward", x);
  CudaGrid launcher(stream);
  grid::avg_pool2d_forward(launcher, spec, x, y);
}

void avg_pool2d_backward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& dy,
                         float beta, const View& dx) {
  require_nchw("avg_pool2d_backward", dy);
  CudaGrid launcher(stream);
  grid::avg_pool2d_backward(launcher, spec, dy, beta, dx);
}

void max_pool2d_forward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y, const View& winner) {
  require_nchw("max_pool2d_forward", x);
  CudaGrid launcher(stream);
  grid::max_pool2d_forward(launcher, spec, x, y, winner);
}

void max_pool2d_backward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& dy,
                         const ConstView& winner, float beta, const View& dx) {
  require_nchw("max_pool2d_backward", dy);
  CudaGrid launcher(stream);
  grid::max_pool2d_backward(launcher, spec, dy, winner, beta, dx);
}

}  // namespace ringlet::impl
