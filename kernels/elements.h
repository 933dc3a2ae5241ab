// The arithmetic of one element, shared by the loops of every device. So a test on one device tests
// it for all.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "base/host_device.h"

namespace ringlet::element {

/// max(0, x); a NaN stays one, since it is not below 0.
RINGLET_HOST_DEVICE constexpr float relu(float x) { return x < 0.0F ? 0.0F : x; }

/// dy * [y > 0]
RINGLET_HOST_DEVICE constexpr float relu_gradient(float y, float dy) {
  return y > 0.0F ? dy : 0.0F;
}

/// 1 / (1 + exp(-x))
RINGLET_HOST_DEVICE inline float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

/// From y = sigmoid(x) or tanh(x).
RINGLET_HOST_DEVICE constexpr float sigmoid_gradient(float y, float dy) {
  return dy * (y * (1.0F - y));
}
RINGLET_HOST_DEVICE constexpr float tanh_gradient(float y, float dy) { return dy * (1.0F - y * y); }

/// PReLU with the slope a below zero, its gradient, and what an element adds to that of the slope.
/// A NaN passes through all of them.
RINGLET_HOST_DEVICE constexpr float prelu(float x, float a) { return x > 0.0F ? x : a * x; }
RINGLET_HOST_DEVICE constexpr float prelu_gradient(float x, float a, float dy) {
  return x > 0.0F ? dy : a * dy;
}
RINGLET_HOST_DEVICE constexpr float prelu_slope_gradient(float x, float dy) {
  return x > 0.0F ? 0.0F : dy * x;
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

/// What softmax cross-entropy wants a probability to be: that of the label, and of any other class.
struct SoftmaxTargets {
  float label = 1;
  float other = 0;
};

/// With label smoothing `smoothing` over `classes` classes.
inline SoftmaxTargets softmax_targets(float smoothing, std::int64_t classes) {
  const float other = smoothing / static_cast<float>(classes);
  return {(1.0F - smoothing) + other, other};
}

/// The same where classes have weights: what a sample whose label weighs `own` wants, in all and of
/// a class that weighs `weight`. `mean`: of all weights.
struct WeightedTargets {
  float smoothing = 0, mean = 1, classes = 1;
  RINGLET_HOST_DEVICE constexpr float all(float own) const {
    return (1.0F - smoothing) * own + smoothing * mean;
  }
  /// The gradient with respect to one logit, for a class that weighs `weight`.
  RINGLET_HOST_DEVICE constexpr float gradient(float probability, bool is_label, float own,
                                               float weight, float dloss) const {
    return dloss * (all(own) * probability - of(is_label, weight));
  }
  RINGLET_HOST_DEVICE constexpr float of(bool is_label, float weight) const {
    return (is_label ? (1.0F - smoothing) * weight : 0.0F) + smoothing / classes * weight;
  }
};

/// The gradient of softmax cross-entropy with respect to one logit.
RINGLET_HOST_DEVICE constexpr float softmax_gradient(float probability, bool is_label,
                                                     const SoftmaxTargets& targets, float dloss) {
  return dloss * (probability - (is_label ? targets.label : targets.other));
}

/// What a gradient longer than `most` is multiplied by, as torch.nn.utils.clip_grad_norm_ has it: 1
/// at most. NaN for a norm that is.
RINGLET_HOST_DEVICE constexpr float clip_factor(float norm, float most) {
  const float factor = most / (norm + 1e-6F);
  return factor > 1.0F ? 1.0F : factor;
}

/// x, or 0 where x is subnormal. A mean whose gradients have become 0 shrinks by a factor a step,
/// and stays among the subnormal numbers for ever, since the least of them times 0.9 is rounded to
/// itself. Processors of Intel take many times as long for an operation on such a number.
RINGLET_HOST_DEVICE inline float without_subnormal(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? 0.0F : x;
}

struct SgdRates {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
};

/// One parameter's step; see sgd.h for the formula.
RINGLET_HOST_DEVICE inline void sgd_step(const SgdRates& rates, float gradient, float& velocity,
                                         float& value) {
  const float g = gradient + rates.weight_decay * value;
  velocity = without_subnormal(rates.momentum * velocity + g);
  value -= rates.learning_rate * (rates.nesterov ? g + rates.momentum * velocity : velocity);
}

/// An exponential moving average takes up a number; see ema.h.
RINGLET_HOST_DEVICE constexpr float ema(float share, float value, float mean) {
  return mean + share * (value - mean);
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

struct AdamWRates {
  float mean_share = 0;    // 1 - beta1
  float square_kept = 0;   // beta2
  float square_share = 0;  // 1 - beta2
  float decay = 0;         // learning rate * weight decay
  float step = 0;          // learning rate / (1 - beta1^t)
  float root_factor = 0;   // 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};

/// One parameter's step; see adamw.h for the formula.
RINGLET_HOST_DEVICE inline void adamw_step(const AdamWRates& rates, float gradient, float& mean,
                                           float& square, float& value) {
  mean = without_subnormal(mean + rates.mean_share * (gradient - mean));
  square =
      without_subnormal(rates.square_kept * square + rates.square_share * (gradient * gradient));
  const float root = std::sqrt(square) * rates.root_factor + rates.epsilon;
  value = (value - rates.decay * value) - rates.step * (mean / root);
}

/// Whether a float, given by its bits, is NaN or infinite: its exponent is all ones.
RINGLET_HOST_DEVICE constexpr bool is_nonfinite(std::uint32_t bits) {
  return (bits & 0x7F800000U) == 0x7F800000U;
}

}  // namespace ringlet::element
