#include <gtest/gtest.h>

#include "kernels/elementwise.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

class Relu : public OperationTest {};

TEST_P(Relu, Forward) {
  for (const std::int64_t n : kBatches) {
    const Shape shape{n, 3, 5, 7};
    const auto x = random_floats(shape.count(), 1);
    const Tensor y = run([&](Device& device) {
      Tensor result = output(device, shape);
      relu_forward(device.compute(), input(device, shape, x), result);
      return result;
    });
    EXPECT_EQ(read(y), reference::relu_forward(x));
    expect_padding_finite(y);
    const Tensor in_place = run([&](Device& device) {
      Tensor result = input(device, shape, x);
      relu_forward(device.compute(), result, result);
      return result;
    });
    EXPECT_EQ(read(in_place), read(y));
  }
}

TEST_P(Relu, Backward) {
  for (const std::int64_t n : kBatches) {
    const Shape shape{n, 70};
    const auto y = reference::relu_forward(random_floats(shape.count(), 1));
    const auto dy = random_floats(shape.count(), 2);
    const auto expected = reference::relu_backward(to_double(y), to_double(dy));
    for (const float beta : kBetas) {
      const auto old = old_gradient(shape.count(), beta);
      const Tensor dx = run([&](Device& device) {
        Tensor result = old_tensor(device, shape, old, beta);
        relu_backward(device.compute(), input(device, shape, y), gradient(device, shape, dy), beta,
                      result);
        return result;
      });
      expect_close(dx, blended(beta, old, expected), 1e-7);
      expect_padding_zero(dx);
    }
    const Tensor in_place = run([&](Device& device) {
      Tensor result = gradient(device, shape, dy);
      relu_backward(device.compute(), input(device, shape, y), result, 0, result);
      return result;
    });
    expect_close(in_place, expected, 0);
  }
}

TEST_P(Relu, LetsNaNThrough) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {1, 4, 19}) {  // in vector loops and in what is left over
    const Shape shape{n, 1};
    for (std::int64_t broken = 0; broken < n; ++broken) {
      auto x = random_floats(n, 1);
      x[static_cast<std::size_t>(broken)] = kNaN;
      Tensor y = input(*devices_[0], shape, x);
      relu_forward(devices_[0]->compute(), y, y);
      EXPECT_TRUE(std::isnan(read(y)[static_cast<std::size_t>(broken)]));
    }
  }
  Tensor y = input(*devices_[0], {2, 1}, {infinity, -infinity});
  relu_forward(devices_[0]->compute(), y, y);
  EXPECT_EQ(read(y), (std::vector<float>{infinity, 0}));
}

INSTANTIATE_TEST_SUITE_P(Setups, Relu, all_setups(), name_of);

/// Sigmoid and tanh, whose gradients are found from what they gave.
struct Smooth {
  void (*forward)(Stream& stream, ConstView x, View y);
  void (*backward)(Stream& stream, ConstView y, ConstView dy, float beta, View dx);
  std::vector<double> (*expected)(std::vector<double> x);
  std::vector<double> (*gradient)(const std::vector<double>& y, const std::vector<double>& dy);
};

const Smooth kSmooth[] = {
    {sigmoid_forward, sigmoid_backward, reference::sigmoid_forward, reference::sigmoid_backward},
    {tanh_forward, tanh_backward, reference::tanh_forward, reference::tanh_backward}};

class SmoothActivation : public OperationTest {};

TEST_P(SmoothActivation, Forward) {
  for (const Smooth& smooth : kSmooth) {
    for (const std::int64_t n : kBatches) {
      const Shape shape{n, 3, 5, 7};
      const auto x = random_floats(shape.count(), 1, -9, 9);
      const Tensor y = run([&](Device& device) {
        Tensor result = output(device, shape);
        smooth.forward(device.compute(), input(device, shape, x), result);
        return result;
      });
      expect_close(y, smooth.expected(to_double(x)), 1e-6);
      expect_padding_finite(y);
      const Tensor in_place = run([&](Device& device) {
        Tensor result = input(device, shape, x);
        smooth.forward(device.compute(), result, result);
        return result;
      });
      EXPECT_EQ(read(in_place), read(y));
    }
  }
}

TEST_P(SmoothActivation, Backward) {
  for (const Smooth& smooth : kSmooth) {
    for (const std::int64_t n : kBatches) {
      const Shape shape{n, 70};
      const auto y = random_floats(shape.count(), 1), dy = random_floats(shape.count(), 2);
      const auto expected = smooth.gradient(to_double(y), to_double(dy));
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape.count(), beta);
        const Tensor dx = run([&](Device& device) {
          Tensor result = old_tensor(device, shape, old, beta);
          smooth.backward(device.compute(), input(device, shape, y), gradient(device, shape, dy),
                          beta, result);
          return result;
        });
        expect_close(dx, blended(beta, old, expected), 1e-6);
        expect_padding_zero(dx);
      }
    }
  }
}

TEST_P(SmoothActivation, LargeNumbersGiveTheEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-infinity, -200, 0, 200, infinity, kNaN};
  const std::vector<float> ends[] = {{0, 0, 0.5F, 1, 1}, {-1, -1, 0, 1, 1}};
  for (const std::size_t which : {0U, 1U}) {
    Tensor y = input(*devices_[0], {6, 1}, x);
    kSmooth[which].forward(devices_[0]->compute(), y, y);
    auto found = read(y);
    EXPECT_TRUE(std::isnan(found.back()));
    found.pop_back();
    EXPECT_EQ(found, ends[which]);
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, SmoothActivation, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
