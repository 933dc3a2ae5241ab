#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/relu.h"
#include "kernels/grid/relu.h"

namespace ringlet::impl {

void relu_forward(CudaStream& stream, const ConstView& x, const View& y) {
  CudaGrid launcher(stream);
  grid::relu_forward(launcher, x, y);
}

void relu_backward(CudaStream& stream, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx) {
  CudaGrid launcher(stream);
  grid::relu_backward(launcher, y, dy, beta, dx);
}

}  // namespace ringlet::impl
