#include "kernels/prelu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/prelu.h"

namespace ringlet::test {
namespace {

class PRelu : public OperationTest {
 protected:
  /// f(shape, slopes): a slope for each channel, and one for all.
  template <class F>
  void for_each_case(F f) {
    for (const Shape& sample : bias_shapes()) {
      for (const std::int64_t n : kBatches) {
        const Shape shape = sample.with_batch(n);
        for (const std::int64_t slopes : {shape[1], std::int64_t{1}}) {
          SCOPED_TRACE(shape.to_string() + ", slopes: " + std::to_string(slopes));
          f(shape, slopes);
        }
      }
    }
  }
};

TEST_P(PRelu, Forward) {
  for_each_case([&](const Shape& shape, std::int64_t slopes) {
    const auto x = random_floats(shape.count(), 1), a = random_floats(slopes, 2);
    const auto expected = reference::prelu_forward(shape, x, a);
    for (const bool in_place : {false, true}) {
      const Tensor y = run([&](Device& device) {
        Tensor from = input(device, shape, x), result = output(device, shape);
        prelu_forward(device.compute(), from, upload(device, {slopes}, a),
                      in_place ? from : result);
        return in_place ? std::move(from) : std::move(result);
      });
      EXPECT_EQ(read(y), expected);
      if (!in_place) expect_padding_finite(y);
    }
  });
}

TEST_P(PRelu, Backward) {
  const auto check = [&](const Shape& shape, std::int64_t slopes) {
    const auto x = random_floats(shape.count(), 1), a = random_floats(slopes, 2);
    const auto dy = random_floats(shape.count(), 3, -0.5F, 1);
    const auto of_data = reference::prelu_backward_data(shape, x, a, dy);
    const auto of_slope =
        reference::prelu_backward_slope(shape, to_double(x), to_double(dy), slopes);
    for (const float beta : kBetas) {
      const auto old = old_gradient(shape.count(), beta), old_slope = old_gradient(slopes, beta);
      const Tensor da = run([&](Device& device) {
        Tensor result = upload(device, {slopes}, old_slope);
        const Tensor dx = old_tensor(device, shape, old, beta);
        prelu_backward(device.compute(), input(device, shape, x), upload(device, {slopes}, a),
                       gradient(device, shape, dy), beta, dx, beta, result);
        expect_close(dx, blended(beta, old, to_double(of_data)), 1e-6);
        expect_padding_zero(dx);
        return result;
      });
      expect_close(da, blended(beta, old_slope, of_slope), 5e-6);
    }
  };
  for_each_case(check);
  check({2, 2, 68, 63}, 2);  // a plane of several parts on the CPU
}

TEST_P(PRelu, EitherGradientAlone) {
  const Shape shape{17, 3, 5, 4}, slopes{3};
  const auto x = random_floats(shape.count(), 1), a = random_floats(3, 2);
  const auto dy = random_floats(shape.count(), 3);
  const auto gradients = [&](bool of_data, bool of_slope) {
    Device& device = *devices_[0];
    Tensor dx = gradient(device, shape, dy);
    Tensor da = upload(device, slopes, std::vector<float>(3));
    const Tensor dy_there = gradient(device, shape, dy);
    prelu_backward(device.compute(), input(device, shape, x), upload(device, slopes, a), dy_there,
                   0, of_data ? dx.view() : View(), 0, of_slope ? da.view() : View());
    return std::pair{read(dx), read(da)};
  };
  const auto both = gradients(true, true);
  EXPECT_EQ(gradients(true, false), std::pair(both.first, std::vector<float>(3)));
  EXPECT_EQ(gradients(false, true), std::pair(dy, both.second));
}

// A broken number has to be seen where it arises.
TEST_P(PRelu, LetsNaNThrough) {
  const Shape shape{2, 3};
  const std::vector<float> x{1, kNaN, -1, 0, 2, 3}, dy(6, 1);
  Device& device = *devices_[0];
  const Tensor y = output(device, shape), da = upload(device, {3}, std::vector<float>(3));
  const Tensor x_there = input(device, shape, x),
               a = upload(device, {3}, std::vector<float>(3, 0.5F));
  prelu_forward(device.compute(), x_there, a, y);
  prelu_backward(device.compute(), x_there, a, gradient(device, shape, dy), 0, {}, 0, da);
  EXPECT_TRUE(std::isnan(read(y)[1]));
  EXPECT_TRUE(std::isnan(read(da)[1]));
  EXPECT_EQ(read(da)[2], -1);
}

INSTANTIATE_TEST_SUITE_P(Setups, PRelu, all_setups(setups_of(Layout::nchw)), name_of);

}  // namespace
}  // namespace ringlet::test
