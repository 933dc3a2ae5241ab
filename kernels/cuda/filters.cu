// The launches of the gradient of filters that has the same bits in every run. What a thread does
// stands in kernels/grid/filter_gradient.h; conv2d.cc says where it is taken.
#include "kernels/cuda/conv2d_filter.h"
#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/grid/filter_gradient.h"

namespace ringlet::impl {

void sum_filter_gradient(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                         const ConstView& dy, float beta, const View& dw) {
  grid::conv2d_backward_filter(CudaGrid(stream), spec, x, dy, beta, dw);
}

}  // namespace ringlet::impl
