// The two gradients of a convolution, which need not wait for each other (kernels/branch.h).
#pragma once

#include "kernels/branch.h"
#include "kernels/conv2d.h"
#include "nn/tape.h"

namespace ringlet::nn {

/// Those of x and weight that are wanted, from that of the result.
inline void conv2d_gradients(const Backward& backward, const Conv2dSpec& spec, const Variable& x,
                             const Variable& weight, const ConstView& dy) {
  Stream& stream = backward.stream();
  if (backward.wants(weight)) {
    const auto [dw, beta] = backward.target(weight);
    const double sums = static_cast<double>(dy.count() * weight.shape().count_per_sample());
    const Branch branch(stream, backward.wants(x) ? 2 * sums : 0);
    conv2d_backward_filter(stream, spec, x.value(), dy, beta, dw);
  }
  if (backward.wants(x)) {
    const auto [dx, beta] = backward.target(x);
    conv2d_backward_data(stream, spec, x.tape().factor(weight, x.dtype()), dy, beta, dx);
  }
  Branch::join(stream);
}

}  // namespace ringlet::nn
