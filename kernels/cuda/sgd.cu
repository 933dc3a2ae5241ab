#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/sgd.h"
#include "kernels/grid/sgd.h"

namespace ringlet::impl {

void sgd_update(CudaStream& stream, const SgdSpec& spec, const ConstView& rates, const View& value,
                const ConstView& gradient, const View& velocity) {
  CudaGrid launcher(stream);
  grid::sgd_update(launcher, spec, rates, value, gradient, velocity);
}

}  // namespace ringlet::impl
