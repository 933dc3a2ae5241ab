#include "kernels/pool2d.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/pool2d.h"

namespace ringlet::test {
namespace {

class Pool2d : public OperationTest {
 protected:
  template <class F>
  void for_each_case(F f) {
    for (const Pool2dCase& c : pool2d_cases()) {
      for (const std::int64_t n : kBatches) {
        const Shape x = c.x.with_batch(n);
        SCOPED_TRACE(std::string(c.name) + " " + x.to_string());
        f(c, x, pool2d_output_shape(c.spec, x));
      }
    }
  }

  /// y and winner of the maximum.
  std::pair<Tensor, Tensor> maximum(Device& device, const Pool2dSpec& spec, const Shape& x_shape,
                                    const std::vector<float>& x) const {
    const Shape y_shape = pool2d_output_shape(spec, x_shape);
    Tensor y = output(device, y_shape), winner = output(device, y_shape, DType::i32);
    max_pool2d_forward(device.compute(), spec, input(device, x_shape, x), y, winner);
    return {std::move(y), std::move(winner)};
  }

  /// The reference's winners as h * W + w.
  static std::vector<std::int32_t> winners(const Pool2dSpec& spec, const Shape& x_shape,
                                           const std::vector<float>& x) {
    std::vector<std::int32_t> pixels;
    for (const auto index : reference::winners_of(spec, x_shape, x)) {
      pixels.push_back(static_cast<std::int32_t>(index % (x_shape[2] * x_shape[3])));
    }
    return pixels;
  }
};

TEST_P(Pool2d, AverageForward) {
  for_each_case([&](const Pool2dCase& c, const Shape& x_shape, const Shape& y_shape) {
    const auto x = random_floats(x_shape.count(), 1);
    const Tensor y = run([&](Device& device) {
      Tensor result = output(device, y_shape);
      avg_pool2d_forward(device.compute(), c.spec, input(device, x_shape, x), result);
      return result;
    });
    expect_close(y, reference::avg_pool2d_forward(c.spec, x_shape, to_double(x)), c.tolerance);
    expect_padding_finite(y);
  });
}

TEST_P(Pool2d, AverageBackward) {
  for_each_case([&](const Pool2dCase& c, const Shape& x_shape, const Shape& y_shape) {
    const auto dy = random_floats(y_shape.count(), 2);
    const auto expected = reference::avg_pool2d_backward(c.spec, x_shape, to_double(dy));
    for (const float beta : kBetas) {
      const auto old = old_gradient(x_shape.count(), beta);
      const Tensor dx = run([&](Device& device) {
        Tensor result = old_tensor(device, x_shape, old, beta);
        avg_pool2d_backward(device.compute(), c.spec, gradient(device, y_shape, dy), beta, result);
        return result;
      });
      expect_close(dx, blended(beta, old, expected), c.tolerance);
      expect_padding_zero(dx);
    }
  });
}

TEST_P(Pool2d, MaximumForward) {
  for_each_case([&](const Pool2dCase& c, const Shape& x_shape, const Shape&) {
    const auto x = random_floats(x_shape.count(), 1);
    const Tensor y = run([&](Device& device) { return maximum(device, c.spec, x_shape, x).first; });
    const Tensor winner =
        run([&](Device& device) { return maximum(device, c.spec, x_shape, x).second; });
    EXPECT_EQ(read(y), reference::max_pool2d_forward(c.spec, x_shape, x));
    EXPECT_EQ(read<std::int32_t>(winner), winners(c.spec, x_shape, x));
    expect_padding_finite(y);
  });
}

TEST_P(Pool2d, MaximumBackward) {
  for_each_case([&](const Pool2dCase& c, const Shape& x_shape, const Shape& y_shape) {
    const auto x = random_floats(x_shape.count(), 1), dy = random_floats(y_shape.count(), 2);
    const auto expected =
        reference::max_pool2d_backward(c.spec, x_shape, to_double(x), to_double(dy));
    for (const float beta : kBetas) {
      const auto old = old_gradient(x_shape.count(), beta);
      const Tensor dx = run([&](Device& device) {
        Tensor result = old_tensor(device, x_shape, old, beta);
        max_pool2d_backward(device.compute(), c.spec, gradient(device, y_shape, dy),
                            maximum(device, c.spec, x_shape, x).second, beta, result);
        return result;
      });
      expect_close(dx, blended(beta, old, expected), c.tolerance);
      expect_padding_zero(dx);
    }
  });
}

TEST_P(Pool2d, FirstOfEqualPixelsWins) {
  for (const Pool2dCase& c : pool2d_cases()) {
    SCOPED_TRACE(c.name);
    const Shape x_shape = c.x.with_batch(17);
    for (const float value : {0.0F, -3.0F}) {  // -3: padding must not win
      const std::vector<float> x(static_cast<std::size_t>(x_shape.count()), value);
      auto [y, winner] = maximum(*devices_[0], c.spec, x_shape, x);
      EXPECT_EQ(read(y), std::vector<float>(static_cast<std::size_t>(y.shape().count()), value));
      EXPECT_EQ(read<std::int32_t>(winner), winners(c.spec, x_shape, x));
    }
  }
}

TEST_P(Pool2d, MaximumShowsBrokenNumbers) {
  for_each_case([&](const Pool2dCase& c, const Shape& x_shape, const Shape&) {
    auto x = random_floats(x_shape.count(), 1);
    for (std::size_t i = 0; i < x.size(); i += 5) x[i] = kNaN;  // none, one or several a window
    const auto [y, winner] = maximum(*devices_[0], c.spec, x_shape, x);
    EXPECT_EQ(read<std::int32_t>(winner), winners(c.spec, x_shape, x));
    const auto values = read(y), expected = reference::max_pool2d_forward(c.spec, x_shape, x);
    for (std::size_t o = 0; o < values.size(); ++o) {
      ASSERT_TRUE(values[o] == expected[o] || (std::isnan(values[o]) && std::isnan(expected[o])))
          << values[o] << " instead of " << expected[o] << " in output " << o;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Setups, Pool2d, all_setups(), name_of);

TEST(Pool2dOutputShape, FollowsPyTorch) {
  const Shape x{2, 3, 5, 6};
  EXPECT_EQ(pool2d_output_shape({}, x), (Shape{2, 3, 2, 3}));
  EXPECT_EQ(pool2d_output_shape({.ceil_mode = true}, x), (Shape{2, 3, 3, 3}));
  EXPECT_EQ(pool2d_output_shape({.kernel = {3, 3}, .padding = {1, 1}}, x), (Shape{2, 3, 3, 3}));
  // A second row would start at row 2, in the padding below the two rows of the image.
  EXPECT_EQ(
      pool2d_output_shape(
          {.kernel = {2, 2}, .stride = {3, 3}, .padding = {1, 1}, .ceil_mode = true}, {1, 1, 2, 2}),
      (Shape{1, 1, 1, 1}));
}

}  // namespace
}  // namespace ringlet::test
