// The references' gradients against central differences, in double. Everything else is compared
// with the references.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/kernels/cases.h"
#include "tests/reference/batch_norm.h"
#include "tests/reference/bias.h"
#include "tests/reference/conv2d.h"
#include "tests/reference/elements.h"
#include "tests/reference/linear.h"
#include "tests/reference/pointwise_loss.h"
#include "tests/reference/pool2d.h"
#include "tests/reference/prelu.h"
#include "tests/reference/softmax_cross_entropy.h"
#include "tests/support/tensors.h"

namespace ringlet::test {
namespace {

using Values = std::vector<double>;

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-7;  // relative L2
constexpr std::int64_t kSamples = 2;

Values random_values(std::int64_t count, std::uint32_t seed) {
  const auto floats = random_floats(count, seed);
  return {floats.begin(), floats.end()};
}

/// Random, no two values and no value and 0 nearer than the step: no kink is crossed.
Values distinct_values(std::int64_t count, std::uint32_t seed) {
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (static_cast<double>(i) + 0.5) / static_cast<double>(count) - 0.4999;
  }
  std::shuffle(values.begin(), values.end(), std::mt19937(seed));
  return values;
}

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// `gradient` should be d f(x) / dx.
void expect_gradient(const std::function<double(const Values&)>& f, Values x,
                     const Values& gradient) {
  Values differences;
  for (double& value : x) {
    const double middle = value;
    value = middle + kStep;
    const double above = f(x);
    value = middle - kStep;
    const double below = f(x);
    value = middle;
    differences.push_back((above - below) / (2 * kStep));
  }
  EXPECT_LE(relative_l2(gradient, differences), kTolerance);
}

TEST(FiniteDifferences, Conv2d) {
  for (const Conv2dCase& c : conv2d_cases()) {
    SCOPED_TRACE(c.name);
    const Shape x_shape = c.x.with_batch(kSamples);
    const auto x = random_values(x_shape.count(), 1), w = random_values(c.w.count(), 2);
    const auto dy = random_values(conv2d_output_shape(c.spec, x_shape, c.w).count(), 3);
    const auto loss = [&](const Values& image, const Values& weights) {
      return dot(reference::conv2d_forward(c.spec, x_shape, c.w, image, weights), dy);
    };
    expect_gradient([&](const Values& v) { return loss(v, w); }, x,
                    reference::conv2d_backward_data(c.spec, x_shape, c.w, w, dy));
    expect_gradient([&](const Values& v) { return loss(x, v); }, w,
                    reference::conv2d_backward_filter(c.spec, x_shape, c.w, x, dy));
  }
}

TEST(FiniteDifferences, Pool2d) {
  for (const Pool2dCase& c : pool2d_cases()) {
    SCOPED_TRACE(c.name);
    const Shape x_shape = c.x.with_batch(kSamples);
    const auto x = distinct_values(x_shape.count(), 1);
    const auto dy = random_values(pool2d_output_shape(c.spec, x_shape).count(), 3);
    expect_gradient(
        [&](const Values& v) { return dot(reference::avg_pool2d_forward(c.spec, x_shape, v), dy); },
        x, reference::avg_pool2d_backward(c.spec, x_shape, dy));
    expect_gradient(
        [&](const Values& v) { return dot(reference::max_pool2d_forward(c.spec, x_shape, v), dy); },
        x, reference::max_pool2d_backward(c.spec, x_shape, x, dy));
  }
}

TEST(FiniteDifferences, Linear) {
  const reference::LinearSize size{3, 7, 5};
  const auto x = random_values(21, 1), w = random_values(35, 2), dy = random_values(15, 3);
  expect_gradient([&](const Values& v) { return dot(reference::linear_forward(size, v, w), dy); },
                  x, reference::linear_backward_data(size, w, dy));
  expect_gradient([&](const Values& v) { return dot(reference::linear_forward(size, x, v), dy); },
                  w, reference::linear_backward_weight(size, x, dy));
}

TEST(FiniteDifferences, Bias) {
  for (const Shape& sample : bias_shapes()) {
    const Shape shape = sample.with_batch(3);
    const auto x = random_values(shape.count(), 1), b = random_values(shape[1], 2);
    const auto dy = random_values(shape.count(), 3);
    expect_gradient([&](const Values& v) { return dot(reference::bias_forward(shape, x, v), dy); },
                    b, reference::bias_backward(shape, dy));
  }
}

TEST(FiniteDifferences, BatchNorm) {
  for (const Shape& shape : {Shape{5, 3}, Shape{2, 3, 3, 2}}) {
    const auto x = random_values(shape.count(), 1), w = random_values(3, 2);
    const auto b = random_values(3, 3), dy = random_values(shape.count(), 4);
    const auto loss = [&](const Values& image, const Values& weight, const Values& bias) {
      const auto moments = reference::moments_of(shape, image);
      return dot(reference::batch_norm_forward(shape, moments, 1e-5, weight, bias, image), dy);
    };
    const auto gradient =
        reference::batch_norm_backward(shape, reference::moments_of(shape, x), 1e-5, w, x, dy);
    expect_gradient([&](const Values& v) { return loss(v, w, b); }, x, gradient.dx);
    expect_gradient([&](const Values& v) { return loss(x, v, b); }, w, gradient.weight);
    expect_gradient([&](const Values& v) { return loss(x, w, v); }, b, gradient.bias);
  }
}

TEST(FiniteDifferences, Relu) {
  const auto x = distinct_values(100, 1), dy = random_values(100, 2);
  expect_gradient([&](const Values& v) { return dot(reference::relu_forward(v), dy); }, x,
                  reference::relu_backward(reference::relu_forward(x), dy));
}

TEST(FiniteDifferences, SigmoidAndTanh) {
  const auto x = random_values(100, 1), dy = random_values(100, 2);
  expect_gradient([&](const Values& v) { return dot(reference::sigmoid_forward(v), dy); }, x,
                  reference::sigmoid_backward(reference::sigmoid_forward(x), dy));
  expect_gradient([&](const Values& v) { return dot(reference::tanh_forward(v), dy); }, x,
                  reference::tanh_backward(reference::tanh_forward(x), dy));
}

TEST(FiniteDifferences, PRelu) {
  const Shape shape{kSamples, 3, 2, 4};
  const auto x = distinct_values(shape.count(), 1), dy = random_values(shape.count(), 2);
  for (const std::int64_t slopes : {3, 1}) {
    const auto a = random_values(slopes, 3);
    expect_gradient([&](const Values& v) { return dot(reference::prelu_forward(shape, v, a), dy); },
                    x, reference::prelu_backward_data(shape, x, a, dy));
    expect_gradient([&](const Values& v) { return dot(reference::prelu_forward(shape, x, v), dy); },
                    a, reference::prelu_backward_slope(shape, x, dy, slopes));
  }
}

TEST(FiniteDifferences, Concat) {
  const auto x = random_values(12, 1), dy = random_values(28, 2);
  const auto sum = [&](const Values& v) {
    Values y(28);
    reference::concat_forward(3, v, 2, 7, y);
    return dot(y, dy);
  };
  expect_gradient(sum, x, reference::concat_backward(3, 4, 2, 7, dy));
}

TEST(FiniteDifferences, PointwiseLosses) {
  constexpr double kScale = 0.25;
  const auto p = random_values(21, 1);
  Values targets = random_values(21, 2);
  for (double& target : targets) target = 0.5 + 0.5 * target;
  for (const auto kind : reference::kPointwiseLosses) {
    expect_gradient(
        [&](const Values& v) {
          return kScale * reference::pointwise_loss_forward(kind, 7, v, targets);
        },
        p, reference::pointwise_loss_backward(kind, 7, p, targets, kScale));
  }
}

TEST(FiniteDifferences, Dropout) {
  const DropoutSpec spec{0.3F, 17, 5};
  const auto x = random_values(60, 1), dy = random_values(60, 2);
  expect_gradient([&](const Values& v) { return dot(reference::dropout(spec, 15, v), dy); }, x,
                  reference::dropout(spec, 15, dy));
}

TEST(FiniteDifferences, SoftmaxCrossEntropy) {
  constexpr std::int64_t kClasses = 7;
  constexpr double kScale = 0.25;
  const auto z = random_values(5 * kClasses, 1);
  const auto labels = random_labels(5, 2, kClasses);
  for (const double smoothing : {0.0, 0.1}) {
    for (const Values& weights : {Values{}, Values{1, 0.5, 2, 3, 0, 1, 7}}) {
      expect_gradient(
          [&](const Values& v) {
            return kScale * reference::softmax_cross_entropy_forward(kClasses, v, labels, smoothing,
                                                                     weights);
          },
          z,
          reference::softmax_cross_entropy_backward(kClasses, z, labels, kScale, smoothing,
                                                    weights));
    }
  }
}

}  // namespace
}  // namespace ringlet::test
