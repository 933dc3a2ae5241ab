#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/reduce.h"
#include "kernels/grid/reduce.h"

namespace ringlet::impl {

void reduce(CudaStream& stream, ReduceOp op, std::span<const ConstView> xs,
            std::span<const View> ys, const ReduceOptions& options) {
  CudaGrid launcher(stream);
  grid::reduce(launcher, op, xs, ys, options);
}

}  // namespace ringlet::impl
