#include "kernels/softmax_cross_entropy.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/softmax_cross_entropy.h"

namespace ringlet::test {
namespace {

constexpr float kLossGradient = 0.125F;

class SoftmaxCrossEntropy : public OperationTest {
 protected:
  /// What the classes count; no numbers: all the same, and no weights are given.
  struct Weights {
    Weights(Device& device, const std::vector<float>& weights) {
      if (weights.empty()) return;
      memory = upload(device, {std::ssize(weights)}, weights);
      const float sum = std::accumulate(weights.begin(), weights.end(), 0.0F);
      of_classes = {memory.view(), sum / static_cast<float>(weights.size())};
    }
    Tensor memory;
    ClassWeights of_classes;
  };

  struct Result {
    Tensor probabilities;
    Tensor loss;
    Tensor sum;  // of an earlier loss, 2, and this one
  };

  Result forward(Device& device, const Shape& shape, const std::vector<float>& logits,
                 const std::vector<std::int32_t>& labels, float smoothing = 0,
                 const std::vector<float>& weights = {}) const {
    const Weights w(device, weights);
    Result result{output(device, shape), upload<float>(device, {1}, {kNaN}),
                  upload<float>(device, {1}, {2})};
    softmax_cross_entropy_forward(device.compute(), input(device, shape, logits),
                                  upload(device, {shape[0]}, labels), result.probabilities,
                                  result.loss, smoothing, result.sum, w.of_classes);
    return result;
  }

  Tensor backward(Device& device, const Shape& shape, const std::vector<float>& logits,
                  const std::vector<std::int32_t>& labels, float beta,
                  const std::vector<float>& old, float smoothing = 0,
                  const std::vector<float>& weights = {}) const {
    const Weights w(device, weights);
    Tensor dz = input(device, shape, old);
    softmax_cross_entropy_backward(
        device.compute(), forward(device, shape, logits, labels).probabilities,
        upload(device, {shape[0]}, labels), upload<float>(device, {1}, {kLossGradient}), beta, dz,
        smoothing, w.of_classes);
    return dz;
  }

  /// Forward and backward agree with the reference in double.
  void compare(const Shape& shape, const std::vector<float>& logits,
               const std::vector<std::int32_t>& labels, float smoothing = 0,
               const std::vector<float>& weights = {}) {
    const std::int64_t classes = shape[1];
    const auto z = to_double(logits);
    const Tensor p =
        run([&](Device& device) { return forward(device, shape, logits, labels).probabilities; });
    expect_close(p, reference::softmax(classes, z), 1e-6);
    expect_padding_zero(p);
    const Tensor loss = run([&](Device& device) {
      return forward(device, shape, logits, labels, smoothing, weights).loss;
    });
    const double expected = reference::softmax_cross_entropy_forward(
        classes, z, labels, static_cast<double>(smoothing), to_double(weights));
    EXPECT_NEAR(read(loss)[0], expected, 1e-6 * std::max(1.0, expected));
    const Tensor sum = run([&](Device& device) {
      return forward(device, shape, logits, labels, smoothing, weights).sum;
    });
    EXPECT_EQ(read(sum)[0], 2 + read(loss)[0]);
    const auto expected_gradient = reference::softmax_cross_entropy_backward(
        classes, z, labels, static_cast<double>(kLossGradient), static_cast<double>(smoothing),
        to_double(weights));
    for (const float beta : kBetas) {
      const auto old = old_gradient(shape.count(), beta);
      const Tensor dz = run([&](Device& device) {
        return backward(device, shape, logits, labels, beta, old, smoothing, weights);
      });
      expect_close(dz, blended(beta, old, expected_gradient), 1e-6);
      expect_padding_zero(dz);
    }
  }
};

TEST_P(SoftmaxCrossEntropy, AgreesWithTheReference) {
  for (const std::int64_t classes : {1, 2, 10, 33}) {
    for (const std::int64_t n : kBatches) {
      const Shape shape{n, classes};
      SCOPED_TRACE(shape.to_string());
      compare(shape, random_floats(shape.count(), 1, -5, 5),
              random_labels(n, 2, static_cast<int>(classes)));
    }
  }
}

TEST_P(SoftmaxCrossEntropy, SmoothsLabels) {
  for (const float smoothing : {0.1F, 0.75F}) {
    for (const std::int64_t classes : {1, 2, 10, 33}) {
      for (const std::int64_t n : {1, 17}) {
        const Shape shape{n, classes};
        SCOPED_TRACE(shape.to_string());
        compare(shape, random_floats(shape.count(), 1, -5, 5),
                random_labels(n, 2, static_cast<int>(classes)), smoothing);
      }
    }
  }
}

/// torch.nn.functional.cross_entropy(z, labels, label_smoothing=0.1, reduction='sum') in float64.
TEST_P(SoftmaxCrossEntropy, SmoothsLabelsAsPyTorchDoes) {
  const std::vector<float> logits = {1, -2, 0.5F, 3, 0, -1};
  const Result result = forward(*devices_[0], {2, 3}, logits, {0, 2}, 0.1F);
  EXPECT_NEAR(read(result.loss)[0], 4.520480806, 1e-5);
  const Tensor dz = backward(*devices_[0], {2, 3}, logits, {0, 2}, 0, std::vector<float>(6), 0.1F);
  const std::vector<double> expected = {-0.329584437, -0.003274446, 0.332858883,
                                        0.902906219,  0.013279289,  -0.916185508};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(read(dz)[i], static_cast<double>(kLossGradient) * expected[i], 1e-6);
  }
}

TEST_P(SoftmaxCrossEntropy, WeighsClasses) {
  for (const float smoothing : {0.0F, 0.1F}) {
    for (const std::int64_t classes : {1, 2, 10, 33}) {
      for (const std::int64_t n : {0, 1, 17}) {
        const Shape shape{n, classes};
        SCOPED_TRACE(shape.to_string());
        compare(shape, random_floats(shape.count(), 1, -5, 5),
                random_labels(n, 2, static_cast<int>(classes)), smoothing,
                random_floats(classes, 3, 0, 4));
      }
    }
  }
}

/// torch.nn.functional.cross_entropy(z, labels, weight=, label_smoothing=) in float64: its sum and
/// its gradient, and its mean, which is this sum over that of the labels' weights.
TEST_P(SoftmaxCrossEntropy, WeighsClassesAsPyTorchDoes) {
  struct Case {
    float smoothing;
    double loss, mean;
    std::vector<double> gradient;
  };
  const Case cases[] = {
      {0,
       12.449950162,
       3.557128618,
       {-0.198125552, 0.015029444, 0.183096108, 2.808718656, 0.139837868, -2.948556523}},
      {0.1F,
       12.159543294,
       3.474155227,
       {-0.084292366, -0.047629371, 0.131921737, 2.682824041, 0.067733062, -2.750557103}}};
  const std::vector<float> logits = {1, -2, 0.5F, 3, 0, -1}, weights = {0.5F, 2, 3};
  const std::vector<std::int32_t> labels = {0, 2};
  for (const auto& [smoothing, loss, mean, gradient] : cases) {
    const Result result = forward(*devices_[0], {2, 3}, logits, labels, smoothing, weights);
    EXPECT_NEAR(read(result.loss)[0], loss, 1e-5);
    EXPECT_NEAR(read(result.loss)[0] / (weights[0] + weights[2]), mean, 3e-6);
    const Tensor dz = backward(*devices_[0], {2, 3}, logits, labels, 0, std::vector<float>(6),
                               smoothing, weights);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(read(dz)[i], static_cast<double>(kLossGradient) * gradient[i], 1e-6);
    }
  }
}

TEST_P(SoftmaxCrossEntropy, RefusesASmoothingOfAll) {
  for (const float smoothing : {-0.1F, 1.0F, kNaN}) {
    EXPECT_THROW((void)forward(*devices_[0], {1, 2}, {1, 2}, {0}, smoothing), ContractError);
  }
}

TEST_P(SoftmaxCrossEntropy, IsStableForLargeLogits) {
  const Shape shape{4, 3};
  const std::vector<float> logits = {1e4F,  -1e4F, 0,      // the right one is far ahead
                                     1e4F,  -1e4F, 0,      // and far behind
                                     -1e4F, -1e4F, -1e4F,  // all equal
                                     1e4F,  1e4F,  9999};
  const std::vector<std::int32_t> labels = {0, 1, 2, 2};
  compare(shape, logits, labels);
  const double e = std::exp(-1.0);
  const Result result = forward(*devices_[0], shape, logits, labels);
  EXPECT_NEAR(read(result.loss)[0], 0 + 2e4 + std::log(3.0) + std::log((2 + e) / e), 2e-3);
  for (const float p : read(result.probabilities)) EXPECT_TRUE(std::isfinite(p));
}

TEST_P(SoftmaxCrossEntropy, OneClassCostsNothing) {
  const Shape shape{17, 1};
  const std::vector<float> logits = random_floats(17, 1, -100, 100);
  const std::vector<std::int32_t> labels(17, 0);
  EXPECT_EQ(read(forward(*devices_[0], shape, logits, labels).loss)[0], 0.0F);
  const Tensor dz = backward(*devices_[0], shape, logits, labels, 0, std::vector<float>(17, kNaN));
  EXPECT_EQ(read(dz), std::vector<float>(17, 0.0F));
}

TEST_P(SoftmaxCrossEntropy, ShowsBrokenLogits) {
  const Result result = forward(*devices_[0], {2, 2}, {1, 2, kNaN, 1}, {0, 1});
  EXPECT_TRUE(std::isnan(read(result.loss)[0]));
}

TEST_P(SoftmaxCrossEntropy, NamesALabelOutsideTheClasses) {
  for (const std::int32_t label : {-1, 3}) {
    if (on_cuda()) {  // cannot throw
      const Result result = forward(*devices_[0], {2, 3}, std::vector<float>(6), {0, label});
      EXPECT_TRUE(std::isnan(read(result.loss)[0]));
      continue;
    }
    try {
      (void)forward(*devices_[0], {2, 3}, std::vector<float>(6), {0, label});
      FAIL() << "label " << label << " was taken";
    } catch (const ContractError& error) {
      EXPECT_NE(std::string(error.what()).find("label " + std::to_string(label)), std::string::npos)
          << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, SoftmaxCrossEntropy, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
