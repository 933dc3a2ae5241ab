#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/l2_norm.h"
#include "kernels/grid/l2_norm.h"

namespace ringlet::impl {

void l2_norm(CudaStream& stream, const ConstView& x, const View& norm) {
  CudaGrid launcher(stream);
  grid::l2_norm(launcher, x, norm);
}

}  // namespace ringlet::impl
