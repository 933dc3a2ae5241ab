#include "kernels/cuda/cast.h"
#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/grid/cast.h"

namespace ringlet::impl {

void cast(CudaStream& stream, const ConstView& x, const View& y) {
  CudaGrid launcher(stream);
  grid::cast(launcher, x, y);
}

}  // namespace ringlet::impl
