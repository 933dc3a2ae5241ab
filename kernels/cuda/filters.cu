// The launches of the gradients of filters. What a thread does stands in
// kernels/grid/filter_gradient.h and narrow_filter_gradient.h; conv2d.cc says where they are taken.
#include "kernels/cuda/conv2d_filter.h"
#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/grid/filter_gradient.h"
#include "kernels/grid/narrow_filter_gradient.h"

namespace ringlet::impl {

bool sum_filter_gradient(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                         const ConstView& dy, float beta, const View& dw) {
  if (!grid::takes_filter_gradient(x, dy)) return false;
  grid::conv2d_backward_filter(CudaGrid(stream), spec, x, dy, beta, dw);
  return true;
}

bool sum_narrow_filter_gradient(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                                const ConstView& dy, float beta, const View& dw) {
  if (!grid::takes_narrow_filter_gradient(spec, x, dy)) return false;
  grid::narrow_filter_gradient(CudaGrid(stream), spec, x, dy, beta, dw);
  return true;
}

}  // namespace ringlet::impl
