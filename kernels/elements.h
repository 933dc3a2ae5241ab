// The arithmetic of one element, shared by the loops of every device. So a test on one device tests
// it for all.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace ringlet::element {

/// max(0, x); a NaN stays one, since it is not below 0.
RINGLET_HOST_DEVICE constexpr float relu(float x) { return x < 0.0F ? 0.0F : x; }

/// dy * [y > 0]
RINGLET_HOST_DEVICE constexpr float relu_gradient(float y, float dy) {
  return y > 0.0F ? dy : 0.0F;
}

/// beta * old + new; with beta = 0, `old` is not used, whatever it holds.
RINGLET_HOST_DEVICE constexpr float blend(float beta, float old_value, float new_value) {
  return beta == 0.0F ? new_value : beta * old_value + new_value;
}

/// Whether `value` replaces `best` as the maximum: a NaN does, so that a broken number stays
/// visible. (With | and not ||, since a vector loop has no branches.)
RINGLET_HOST_DEVICE constexpr bool beats(float value, float best) {
  return (value > best) | (value != value);
}

/// One feature's factor in dropout, from the uniform number of its sample and feature.
RINGLET_HOST_DEVICE constexpr float dropout_factor(float uniform, float probability,
                                                   float kept_factor) {
  return uniform >= probability ? kept_factor : 0.0F;
}

/// (x / 255 - mean) / deviation, in this order of operations.
RINGLET_HOST_DEVICE constexpr float normalize(std::uint8_t x, float mean, float deviation) {
  return (static_cast<float>(x) / 255.0F - mean) / deviation;
}

/// The gradient of softmax cross-entropy with respect to one logit.
RINGLET_HOST_DEVICE constexpr float softmax_gradient(float probability, bool is_label,
                                                     float dloss) {
  return dloss * (probability - (is_label ? 1.0F : 0.0F));
}

struct SgdRates {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
};

/// One parameter's step; see sgd.h for the formula.
RINGLET_HOST_DEVICE constexpr void sgd_step(const SgdRates& rates, float gradient, float& velocity,
                                            float& value) {
  const float g = gradient + rates.weight_decay * value;
  velocity = rates.momentum * velocity + g;
  value -= rates.learning_rate * (rates.nesterov ? g + rates.momentum * velocity : velocity);
}

/// Count, mean and sum of squared deviations, which grow by those of other values (Chan, Golub and
/// LeVeque).
struct Moments {
  double count = 0, mean = 0, squares = 0;
  RINGLET_HOST_DEVICE constexpr void add(double values, double its_mean, double its_squares) {
    if (values == 0) return;
    const double together = count + values, apart = its_mean - mean;
    mean += apart * values / together;
    squares += its_squares + apart * apart * count * values / together;
    count = together;
  }
};

/// Whether a float, given by its bits, is NaN or infinite: its exponent is all ones.
RINGLET_HOST_DEVICE constexpr bool is_nonfinite(std::uint32_t bits) {
  return (bits & 0x7F800000U) == 0x7F800000U;
}

}  // namespace ringlet::element
