#include "kernels/pointwise_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/pointwise_loss.h"

namespace ringlet::test {
namespace {

constexpr float kGradientOfLoss = 0.125F;

class PointwiseLossTest : public OperationTest {
 protected:
  struct Result {
    Tensor loss;
    Tensor sum;  // of an earlier loss, 2, and this one
  };

  Result forward(Device& device, PointwiseLoss kind, const Shape& shape,
                 const std::vector<float>& predictions, const std::vector<float>& targets) const {
    Result result{upload<float>(device, {1}, {kNaN}), upload<float>(device, {1}, {2})};
    pointwise_loss_forward(device.compute(), kind, input(device, shape, predictions),
                           input(device, shape, targets), result.loss, result.sum);
    return result;
  }

  Tensor backward(Device& device, PointwiseLoss kind, const Shape& shape,
                  const std::vector<float>& predictions, const std::vector<float>& targets,
                  float beta, const std::vector<float>& old) const {
    Tensor dp = old_tensor(device, shape, old, beta);
    pointwise_loss_backward(device.compute(), kind, input(device, shape, predictions),
                            input(device, shape, targets),
                            upload<float>(device, {1}, {kGradientOfLoss}), beta, dp);
    return dp;
  }
};

TEST_P(PointwiseLossTest, AgreesWithTheReference) {
  for (const PointwiseLoss kind : reference::kPointwiseLosses) {
    for (const std::int64_t n : kBatches) {
      for (const Shape& shape : {Shape{n, 1}, Shape{n, 7}, Shape{n, 2, 3, 5}}) {
        SCOPED_TRACE(shape.to_string());
        const auto p = random_floats(shape.count(), 1, -5, 5);
        const auto t = random_floats(shape.count(), 2, 0, 1);
        const double expected = reference::pointwise_loss_forward(kind, shape.count_per_sample(),
                                                                  to_double(p), to_double(t));
        const Tensor loss =
            run([&](Device& device) { return forward(device, kind, shape, p, t).loss; });
        EXPECT_NEAR(read(loss)[0], expected, 1e-6 * std::max(1.0, expected));
        const Tensor sum =
            run([&](Device& device) { return forward(device, kind, shape, p, t).sum; });
        EXPECT_EQ(read(sum)[0], 2 + read(loss)[0]);
        const auto gradient =
            reference::pointwise_loss_backward(kind, shape.count_per_sample(), to_double(p),
                                               to_double(t), static_cast<double>(kGradientOfLoss));
        for (const float beta : kBetas) {
          const auto old = old_gradient(shape.count(), beta);
          const Tensor dp =
              run([&](Device& device) { return backward(device, kind, shape, p, t, beta, old); });
          expect_close(dp, blended(beta, old, gradient), 1e-6);
          expect_padding_zero(dp);
        }
      }
    }
  }
}

/// torch.nn.functional.mse_loss and binary_cross_entropy_with_logits in float64, times the two
/// samples.
TEST_P(PointwiseLossTest, IsWhatPyTorchHas) {
  struct Case {
    PointwiseLoss kind;
    std::vector<float> targets;
    double loss;
    std::vector<double> gradient;
  };
  const std::vector<float> predictions = {1, -2, 0.5F, 3, 0, -1};
  const Case cases[] = {
      {PointwiseLoss::squared_error,
       {0.5F, -1, 0.25F, 1, 1, 0},
       2.4375,
       {0.333333333, -0.666666667, 0.166666667, 1.333333333, -0.666666667, -0.666666667}},
      {PointwiseLoss::binary_cross_entropy,
       {1, 0, 0.25F, 0, 1, 0.5F},
       1.948087634,
       {-0.089647140, 0.039734307, 0.124153110, 0.317524709, -0.166666667, -0.077019526}}};
  for (const auto& [kind, targets, loss, gradient] : cases) {
    const Result result = forward(*devices_[0], kind, {2, 3}, predictions, targets);
    EXPECT_NEAR(read(result.loss)[0], loss, 1e-6);
    const Tensor dp =
        backward(*devices_[0], kind, {2, 3}, predictions, targets, 0, std::vector<float>(6));
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(read(dp)[i], static_cast<double>(kGradientOfLoss) * gradient[i], 1e-7);
    }
  }
}

TEST_P(PointwiseLossTest, IsStableForLargeLogitsAndShowsBrokenOnes) {
  const auto loss_of = [&](PointwiseLoss kind, float prediction, float target) {
    return read(forward(*devices_[0], kind, {1, 1}, {prediction}, {target}).loss)[0];
  };
  constexpr auto kBinary = PointwiseLoss::binary_cross_entropy;
  EXPECT_EQ(loss_of(kBinary, 1e4F, 1), 0);
  EXPECT_EQ(loss_of(kBinary, 1e4F, 0), 1e4F);
  EXPECT_EQ(loss_of(kBinary, -1e4F, 1), 1e4F);
  EXPECT_EQ(loss_of(kBinary, -1e4F, 0), 0);
  for (const PointwiseLoss kind : reference::kPointwiseLosses) {
    EXPECT_TRUE(std::isnan(loss_of(kind, kNaN, 1)));
    EXPECT_TRUE(std::isnan(loss_of(kind, 1, kNaN)));
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, PointwiseLossTest, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
