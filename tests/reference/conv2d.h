// The convolution of kernels/conv2d.h, said as plainly as possible. All values in N, C, H, W order;
// T is float or double.
#pragma once

#include <vector>

#include "kernels/conv2d.h"

namespace ringlet::test::reference {

/// y, before bias and activation.
template <class T>
std::vector<T> conv2d_forward(const Conv2dSpec& spec, const Shape& x_shape, const Shape& w_shape,
                              const std::vector<T>& x, const std::vector<T>& w);
template <class T>
std::vector<T> conv2d_backward_data(const Conv2dSpec& spec, const Shape& x_shape,
                                    const Shape& w_shape, const std::vector<T>& w,
                                    const std::vector<T>& dy);
template <class T>
std::vector<T> conv2d_backward_filter(const Conv2dSpec& spec, const Shape& x_shape,
                                      const Shape& w_shape, const std::vector<T>& x,
                                      const std::vector<T>& dy);

}  // namespace ringlet::test::reference
