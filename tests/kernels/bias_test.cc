#include "kernels/bias.h"

#include <gtest/gtest.h>

#include "kernels/pool2d.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/bias.h"
#include "tests/reference/elements.h"
#include "tests/reference/pool2d.h"

namespace ringlet::test {
namespace {

class Bias : public OperationTest {
 protected:
  template <class F>
  void for_each_shape(F f) {
    for (const Shape& sample : bias_shapes()) {
      for (const std::int64_t n : kBatches) {
        const Shape shape = sample.with_batch(n);
        SCOPED_TRACE(shape.to_string());
        f(shape);
      }
    }
  }
};

TEST_P(Bias, Forward) {
  for_each_shape([&](const Shape& shape) {
    const auto x = random_floats(shape.count(), 1), b = random_floats(shape[1], 2);
    const auto expected = reference::bias_forward(shape, x, b);
    const Tensor y = run([&](Device& device) {
      Tensor result = output(device, shape);
      bias_forward(device.compute(), input(device, shape, x), upload(device, {shape[1]}, b),
                   result);
      return result;
    });
    EXPECT_EQ(read(y), expected);
    expect_padding_finite(y);
    const Tensor in_place = run([&](Device& device) {
      Tensor result = input(device, shape, x);
      bias_forward(device.compute(), result, upload(device, {shape[1]}, b), result);
      return result;
    });
    EXPECT_EQ(read(in_place), expected);
  });
}

TEST_P(Bias, Backward) {
  for_each_shape([&](const Shape& shape) {
    const auto dy = random_floats(shape.count(), 1, -0.5F, 1);  // sums that do not cancel out
    const auto expected = reference::bias_backward(shape, to_double(dy));
    for (const float beta : kBetas) {
      const auto old = old_gradient(shape[1], beta);
      const Tensor db = run([&](Device& device) {
        Tensor result = upload(device, {shape[1]}, old);
        bias_backward(device.compute(), gradient(device, shape, dy), beta, result);
        return result;
      });
      expect_close(db, blended(beta, old, expected), 5e-6);
    }
  });
}

TEST_P(Bias, BackwardWithRelu) {
  for_each_shape([&](const Shape& shape) {
    const auto a = reference::relu_forward(random_floats(shape.count(), 3));
    const auto dy = random_floats(shape.count(), 1, -0.5F, 1);
    const auto dz = reference::relu_backward(a, dy);
    const auto expected = reference::bias_backward(shape, to_double(dz));
    for (const float beta : kBetas) {
      const auto old = old_gradient(shape[1], beta);
      const Tensor db = run([&](Device& device) {
        Tensor result = upload(device, {shape[1]}, old), dx = gradient(device, shape, dy);
        bias_relu_backward(device.compute(), input(device, shape, a), dx, dx, beta, result);
        EXPECT_EQ(test::read(device.compute(), dx), dz);
        return result;
      });
      expect_close(db, blended(beta, old, expected), 5e-6);
    }
  });
}

TEST_P(Bias, BackwardWithReluAndPooling) {
  if (layout() == Layout::lanes) GTEST_SKIP() << "in lanes the convolution does it all";
  for (const Shape& sample : {Shape{1, 3, 6, 8}, {1, 20, 5, 5}, {1, 2, 7, 4}}) {
    for (const std::int64_t n : kBatches) {
      const Shape shape = sample.with_batch(n), y_shape = pool2d_output_shape({}, shape);
      SCOPED_TRACE(shape.to_string());
      const auto a = reference::relu_forward(random_floats(shape.count(), 3));
      const auto dy = random_floats(y_shape.count(), 1, -0.5F, 1);
      const auto dz = reference::relu_backward(a, reference::avg_pool2d_backward({}, shape, dy));
      const auto expected = reference::bias_backward(shape, to_double(dz));
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape[1], beta);
        const Tensor db = run([&](Device& device) {
          Tensor result = upload(device, {shape[1]}, old), pixels = input(device, shape, a);
          bias_relu_avg_pool2d_backward(device.compute(), gradient(device, y_shape, dy), pixels,
                                        beta, result);
          EXPECT_EQ(test::read(device.compute(), pixels), dz);
          return result;
        });
        expect_close(db, blended(beta, old, expected), 5e-6);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, Bias, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
