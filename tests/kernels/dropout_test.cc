#include "kernels/dropout.h"

#include <gtest/gtest.h>

#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

class Dropout : public OperationTest {
 protected:
  Tensor forward(Device& device, const DropoutSpec& spec, const Shape& shape,
                 const std::vector<float>& x) const {
    Tensor y = output(device, shape);
    dropout_forward(device.compute(), spec, input(device, shape, x), y);
    return y;
  }
};

// The reference knows no layout: agreeing with it in both means the same mask in both.
TEST_P(Dropout, AgreesWithTheReference) {
  for (const std::int64_t n : kBatches) {
    for (const Shape& sample : {Shape{1, 1}, Shape{1, 10}, Shape{1, 3, 2, 5}}) {
      const Shape shape = sample.with_batch(n);
      SCOPED_TRACE(shape.to_string());
      const DropoutSpec spec{0.4F, 0x123456789ABCDEF0U, 1000};
      const auto x = random_floats(shape.count(), 1);
      const auto expected = reference::dropout(spec, shape.count_per_sample(), to_double(x));
      const Tensor y = run([&](Device& device) { return forward(device, spec, shape, x); });
      expect_close(y, expected, 1e-6);
      expect_padding_finite(y);
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape.count(), beta);
        const Tensor dx = run([&](Device& device) {
          Tensor result = old_tensor(device, shape, old, beta);
          dropout_backward(device.compute(), spec, gradient(device, shape, x), beta, result);
          return result;
        });
        expect_close(dx, blended(beta, old, expected), 1e-6);
        expect_padding_zero(dx);
      }
    }
  }
}

TEST_P(Dropout, DoesNotDependOnHowTheBatchIsSplit) {
  constexpr std::int64_t kFeatures = 9;
  const std::vector<float> ones(50 * kFeatures, 1.0F);
  const auto whole = read(forward(*devices_[0], {0.5F, 7, 200}, {50, kFeatures}, ones));
  for (const std::int64_t first : {1, 16, 23, 49}) {
    std::vector<float> parts;
    for (const auto& [begin, end] : {std::pair{std::int64_t{0}, first}, {first, 50L}}) {
      const std::vector<float> x(static_cast<std::size_t>((end - begin) * kFeatures), 1.0F);
      const auto part =
          read(forward(*devices_[0], {0.5F, 7, 200 + begin}, {end - begin, kFeatures}, x));
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(parts, whole) << "split at " << first;
  }
}

TEST_P(Dropout, ReadsThePositionFromTheDevice) {
  const Shape shape{17, 10};
  const auto x = random_floats(shape.count(), 1);
  const BatchPosition position{3, 40};
  Device& device = *devices_[0];
  const Tensor at(device, batch_position_shape(), DType::u8);
  copy_from_host(device.compute(), &position, at);
  DropoutSpec given{0.5F, 7, 2};
  given.first_sample += sample_number(position);
  EXPECT_EQ(read(forward(device, {0.5F, 7, 2, at}, shape, x)),
            read(forward(device, given, shape, x)));
  EXPECT_NE(read(forward(device, {0.5F, 7, 2, at}, shape, x)),
            read(forward(device, {0.5F, 7, 42}, shape, x)));  // the epoch counts
}

TEST_P(Dropout, KeepsTheMean) {
  constexpr std::int64_t kCount = 100 * 100;
  const std::vector<float> ones(kCount, 1.0F);
  for (const float p : {0.0F, 0.1F, 0.5F, 0.9F}) {
    const auto y = read(forward(*devices_[0], {p, 3, 0}, {100, 100}, ones));
    double sum = 0, zeros = 0;
    for (const float value : y) {
      sum += static_cast<double>(value);
      zeros += value == 0 ? 1 : 0;
    }
    const double deviation = std::sqrt(static_cast<double>(p * (1 - p)) / kCount);
    EXPECT_NEAR(zeros / kCount, p, 4 * deviation);
    EXPECT_NEAR(sum / kCount, 1, 4 * deviation / static_cast<double>(1 - p) + 1e-6);
  }
}

TEST_P(Dropout, DependsOnItsKey) {
  const std::vector<float> ones(400, 1.0F);
  const auto first = read(forward(*devices_[0], {0.5F, 1, 0}, {4, 100}, ones));
  const auto second = read(forward(*devices_[0], {0.5F, 2, 0}, {4, 100}, ones));
  EXPECT_NE(first, second);
}

INSTANTIATE_TEST_SUITE_P(Setups, Dropout, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
