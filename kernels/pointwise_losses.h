// The arithmetic of kernels/pointwise_loss.h: the loss of one number, and its slope with respect to
// the prediction, for the loops of every device.
#pragma once

#include <cmath>

#include "kernels/elements.h"
#include "kernels/pointwise_loss.h"

namespace ringlet::element {

struct SquaredError {
  static RINGLET_HOST_DEVICE float loss(float prediction, float target) {
    return (prediction - target) * (prediction - target);
  }
  static RINGLET_HOST_DEVICE float slope(float prediction, float target) {
    return 2.0F * (prediction - target);
  }
};

/// Stable for logits of any size: exp() sees nothing above 0. A NaN stays one.
struct BinaryCrossEntropy {
  static RINGLET_HOST_DEVICE float loss(float logit, float target) {
    const float above = relu(logit);
    return above - logit * target + std::log1p(std::exp(-std::abs(logit)));
  }
  static RINGLET_HOST_DEVICE float slope(float logit, float target) {
    return sigmoid(logit) - target;
  }
};

/// visit(Loss{})
template <class Visitor>
void visit_loss(PointwiseLoss kind, Visitor&& visitor) {
  if (kind == PointwiseLoss::squared_error) return visitor(SquaredError{});
  visitor(BinaryCrossEntropy{});
}

}  // namespace ringlet::element
