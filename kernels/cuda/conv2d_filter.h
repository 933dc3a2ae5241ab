// The gradient of filters by kernels of our own (kernels/grid/filter_gradient.h and
// narrow_filter_gradient.h).
#pragma once

#include "kernels/conv2d.h"

namespace ringlet {

class CudaStream;

namespace impl {

/// conv2d_backward_filter() by tensor cores, where it takes these factors, of one sample or more:
/// false otherwise. The same bits in every run, too.
bool sum_narrow_filter_gradient(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                                const ConstView& dy, float beta, const View& dw);

/// conv2d_backward_filter() with the same bits in every run; false where samples are too large.
bool sum_filter_gradient(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                         const ConstView& dy, float beta, const View& dw);

}  // namespace impl

}  // namespace ringlet
