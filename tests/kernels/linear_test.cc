#include "kernels/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/bias.h"
#include "tests/reference/elements.h"
#include "tests/reference/linear.h"

namespace ringlet::test {
namespace {

class Linear : public OperationTest {
 protected:
  template <class F>
  void for_each_case(F f) {
    for (const LinearCase& c : linear_cases()) {
      for (const std::int64_t n : kBatches) {
        SCOPED_TRACE(std::string(c.name) + " batch " + std::to_string(n));
        f(c, reference::LinearSize{n, c.inputs, c.outputs});
      }
    }
  }
};

TEST_P(Linear, Forward) {
  for_each_case([&](const LinearCase& c, const reference::LinearSize& size) {
    const auto x = random_floats(size.n * size.inputs, 1);
    const auto w = random_floats(size.outputs * size.inputs, 2), b = random_floats(size.outputs, 3);
    const auto product = reference::linear_forward(size, to_double(x), to_double(w));
    const auto sum = reference::bias_forward({size.n, size.outputs}, product, to_double(b));
    const auto forward = [&](bool with_bias, Activation activation) {
      return run([&](Device& device) {
        Tensor y = output(device, {size.n, size.outputs});
        const Tensor bias = upload(device, {size.outputs}, b);
        linear_forward(device.compute(), input(device, {size.n, size.inputs}, x),
                       upload(device, {size.outputs, size.inputs}, w),
                       with_bias ? ConstView(bias) : ConstView(), activation, y);
        return y;
      });
    };
    expect_close(forward(false, Activation::none), product, c.tolerance);
    expect_close(forward(true, Activation::none), sum, c.tolerance);
    expect_close(forward(false, Activation::relu), reference::relu_forward(product), c.tolerance);
    const Tensor y = forward(true, Activation::relu);
    expect_close(y, reference::relu_forward(sum), c.tolerance);
    expect_padding_finite(y);
  });
}

TEST_P(Linear, BackwardData) {
  for_each_case([&](const LinearCase& c, const reference::LinearSize& size) {
    const Shape x_shape{size.n, size.inputs}, y_shape{size.n, size.outputs};
    const Shape w_shape{size.outputs, size.inputs};
    const auto w = random_floats(w_shape.count(), 2), dy = random_floats(y_shape.count(), 4);
    const auto expected = reference::linear_backward_data(size, to_double(w), to_double(dy));
    for (const float beta : kBetas) {
      const auto old = old_gradient(x_shape.count(), beta);
      const Tensor dx = run([&](Device& device) {
        Tensor result = old_tensor(device, x_shape, old, beta);
        linear_backward_data(device.compute(), upload(device, w_shape, w),
                             gradient(device, y_shape, dy), beta, result);
        return result;
      });
      expect_close(dx, blended(beta, old, expected), c.tolerance);
      expect_padding_zero(dx);
    }
  });
}

TEST_P(Linear, BackwardWeight) {
  for_each_case([&](const LinearCase& c, const reference::LinearSize& size) {
    const Shape x_shape{size.n, size.inputs}, y_shape{size.n, size.outputs};
    const Shape w_shape{size.outputs, size.inputs};
    const auto x = random_floats(x_shape.count(), 1), dy = random_floats(y_shape.count(), 4);
    const auto expected = reference::linear_backward_weight(size, to_double(x), to_double(dy));
    for (const float beta : kBetas) {
      const auto old = old_gradient(w_shape.count(), beta);
      const Tensor dw = run([&](Device& device) {
        Tensor result = upload(device, w_shape, old);
        linear_backward_weight(device.compute(), input(device, x_shape, x),
                               gradient(device, y_shape, dy), beta, result);
        return result;
      });
      expect_close(dw, blended(beta, old, expected), sum_tolerance(c.tolerance, size.n));
    }
  });
}

TEST_P(Linear, BackwardWeightAndBias) {
  for_each_case([&](const LinearCase& c, const reference::LinearSize& size) {
    const Shape x_shape{size.n, size.inputs}, y_shape{size.n, size.outputs};
    const Shape w_shape{size.outputs, size.inputs}, b_shape{size.outputs};
    const auto x = random_floats(x_shape.count(), 1), dy = random_floats(y_shape.count(), 4);
    const auto of_weight = reference::linear_backward_weight(size, to_double(x), to_double(dy));
    const auto of_bias = reference::bias_backward(y_shape, to_double(dy));
    for (const float beta : kBetas) {
      const auto old_w = old_gradient(w_shape.count(), beta);
      const auto old_b = old_gradient(b_shape.count(), 1 - beta);
      const auto gradients = [&](bool of_the_bias) {
        return run([&](Device& device) {
          Tensor dw = upload(device, w_shape, old_w), db = upload(device, b_shape, old_b);
          linear_backward_weight_bias(device.compute(), input(device, x_shape, x),
                                      gradient(device, y_shape, dy), beta, dw, 1 - beta, db);
          return of_the_bias ? std::move(db) : std::move(dw);
        });
      };
      expect_close(gradients(false), blended(beta, old_w, of_weight),
                   sum_tolerance(c.tolerance, size.n));
      const auto sums = read(gradients(true));
      const auto expected = blended(1 - beta, old_b, of_bias);
      ASSERT_EQ(sums.size(), expected.size());
      for (std::size_t i = 0; i < sums.size(); ++i) {  // a single sum may be close to zero
        EXPECT_NEAR(sums[i], expected[i], c.tolerance * std::sqrt(size.n + 1.0));
      }
    }
  });
}

// A library's kernel may load a bias in words of 16 bytes.
TEST_P(Linear, TakesABiasAtTheAddressOfAnyFloat) {
  const reference::LinearSize size{3, 8, 8};
  const auto x = random_floats(size.n * size.inputs, 1);
  const auto w = random_floats(size.outputs * size.inputs, 2);
  const auto numbers = random_floats(size.outputs + 3, 3);
  const auto dy = random_floats(size.n * size.outputs, 4);
  const auto product = reference::linear_forward(size, to_double(x), to_double(w));
  for (const int offset : {1, 2, 3}) {
    const std::vector<float> b(numbers.begin() + offset, numbers.begin() + offset + size.outputs);
    const auto sum = reference::bias_forward({size.n, size.outputs}, product, to_double(b));
    const Tensor y = run([&](Device& device) {
      Tensor y = output(device, {size.n, size.outputs});
      const Tensor all = upload(device, {size.outputs + 3}, numbers);
      linear_forward(device.compute(), input(device, {size.n, size.inputs}, x),
                     upload(device, {size.outputs, size.inputs}, w),
                     all.view().slice(offset, offset + size.outputs), Activation::relu, y);
      return y;
    });
    expect_close(y, reference::relu_forward(sum), 1e-5);
    const Tensor db = run([&](Device& device) {
      Tensor all = upload(device, {size.outputs + 3}, numbers);
      const Tensor dw = upload(device, {size.outputs, size.inputs}, w);
      linear_backward_weight_bias(device.compute(), input(device, {size.n, size.inputs}, x),
                                  gradient(device, {size.n, size.outputs}, dy), 0, dw, 0,
                                  all.view().slice(offset, offset + size.outputs));
      return all;
    });
    auto expected = to_double(numbers);
    const auto gradient = reference::bias_backward({size.n, size.outputs}, to_double(dy));
    std::copy(gradient.begin(), gradient.end(), expected.begin() + offset);
    expect_close(db, expected, 1e-5);
  }
}

// Wherever the ReLU is computed: a broken number has to be seen where it arises.
TEST_P(Linear, LetsNaNThroughTheRelu) {
  const Shape x_shape{17, 37}, w_shape{11, 37}, y_shape{17, 11};
  auto x = random_floats(x_shape.count(), 1);
  x[37] = kNaN;  // in the second sample
  const auto w = random_floats(w_shape.count(), 2), b = random_floats(w_shape[0], 3);
  for (const bool with_bias : {false, true}) {
    const Tensor y = run([&](Device& device) {
      Tensor result = output(device, y_shape);
      const Tensor bias = upload(device, {w_shape[0]}, b);
      linear_forward(device.compute(), input(device, x_shape, x), upload(device, w_shape, w),
                     with_bias ? ConstView(bias) : ConstView(), Activation::relu, result);
      return result;
    });
    const std::vector<float> values = read(y);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::isnan(values[i]), i / 11 == 1) << "feature " << i % 11 << " of " << i / 11;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, Linear, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
