// The operation that only the layout lanes has: the fused convolution, ReLU and average pooling. It
// is compared with the three operations one after another, in double.
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/conv2d_relu_avg_pool2d.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/bias.h"
#include "tests/reference/conv2d.h"
#include "tests/reference/elements.h"
#include "tests/reference/pool2d.h"

namespace ringlet::test {
namespace {

using Doubles = std::vector<double>;

std::vector<Conv2dCase> fused_cases() {
  return {
      {"one_channel", {}, {1, 1, 10, 10}, {20, 1, 3, 3}},
      {"odd_result", {}, {1, 4, 9, 9}, {7, 4, 5, 5}},
      {"several_parts", {}, {1, 1, 28, 28}, {20, 1, 3, 3}},  // gradients spread block by block
      {"smallest", {}, {1, 3, 2, 2}, {1, 3, 1, 1}},
      {"odd_width", {}, {1, 2, 6, 9}, {11, 2, 3, 3}},
      {"padding", {.padding = {1, 2}}, {1, 3, 5, 6}, {4, 3, 3, 4}},
      {"all",
       {.stride = {2, 1}, .padding = {2, 1}, .dilation = {2, 2}, .groups = 3},
       {1, 6, 9, 11},
       {9, 2, 2, 3}},
  };
}

/// One case with its inputs and what comes out of the operations one after another.
struct Problem {
  Problem(const Conv2dCase& c, std::int64_t n)
      : spec(c.spec),
        x_shape(c.x.with_batch(n)),
        w_shape(c.w),
        full(conv2d_output_shape(spec, x_shape, w_shape)),
        y_shape(conv2d_relu_avg_pool2d_output_shape(spec, x_shape, w_shape)),
        mask_shape(conv2d_relu_avg_pool2d_mask_shape(y_shape)),
        x(random_floats(x_shape.count(), 1)),
        w(random_floats(w_shape.count(), 2)),
        b(random_floats(w_shape[0], 3)),
        dy(random_floats(y_shape.count(), 4)) {}

  Doubles activations(bool with_bias) const {
    Doubles sum = reference::conv2d_forward(spec, x_shape, w_shape, to_double(x), to_double(w));
    if (with_bias) sum = reference::bias_forward(full, sum, to_double(b));
    return reference::relu_forward(sum);
  }
  Doubles y(bool with_bias) const {
    return reference::avg_pool2d_forward(Pool2dSpec{}, full, activations(with_bias));
  }
  /// Gradient of the convolution's result.
  Doubles inner_gradient() const {
    return reference::relu_backward(
        activations(true), reference::avg_pool2d_backward(Pool2dSpec{}, full, to_double(dy)));
  }

  Conv2dSpec spec;
  Shape x_shape, w_shape, full, y_shape, mask_shape;
  std::vector<float> x, w, b, dy;
};

class Fused : public OperationTest {
 protected:
  template <class F>
  void for_each_problem(F f) {
    for (const Conv2dCase& c : fused_cases()) {
      for (const std::int64_t n : kBatches) {
        if (c.x.count() > 500 && n > 33) continue;  // to be quick
        SCOPED_TRACE(std::string(c.name) + " " + std::to_string(n));
        f(c, Problem(c, n));
      }
    }
  }

  struct Result {
    Tensor y, mask;
  };
  Result forward(Device& device, const Problem& p, bool with_bias = true) {
    Result result{output(device, p.y_shape), Tensor(device, p.mask_shape, DType::u8)};
    const Tensor b = upload(device, {p.w_shape[0]}, p.b);
    conv2d_relu_avg_pool2d_forward(device.compute(), p.spec, input(device, p.x_shape, p.x),
                                   upload(device, p.w_shape, p.w),
                                   with_bias ? ConstView(b) : ConstView(), result.y, result.mask);
    return result;
  }
};

TEST_P(Fused, Forward) {
  for_each_problem([&](const Conv2dCase& c, const Problem& p) {
    for (const bool with_bias : {true, false}) {
      const Tensor y = run([&](Device& device) { return forward(device, p, with_bias).y; });
      expect_close(y, p.y(with_bias), c.tolerance);
      expect_padding_finite(y);
    }
  });
}

TEST_P(Fused, MaskHasABitForEachPositiveActivation) {
  for_each_problem([&](const Conv2dCase&, const Problem& p) {
    const Tensor mask = run([&](Device& device) { return forward(device, p).mask; });
    const auto* bits = static_cast<const std::uint16_t*>(mask.view().data());
    const Doubles a = p.activations(true);
    const auto& full = p.full;
    int wrong = 0;
    for (std::int64_t at = 0; at < full.count(); ++at) {
      const std::int64_t j = at % full[3], i = at / full[3] % full[2];
      const std::int64_t o = at / full[3] / full[2] % full[1], n = at / full.count_per_sample();
      if (i >= 2 * p.y_shape[2] || j >= 2 * p.y_shape[3]) continue;
      const std::int64_t window =
          ((n / 16 * full[1] + o) * p.y_shape[2] + i / 2) * p.y_shape[3] + j / 2;
      const int bit = bits[window * 4 + i % 2 * 2 + j % 2] >> (n % 16) & 1;
      if ((a[static_cast<std::size_t>(at)] > 0) != (bit == 1)) ++wrong;
    }
    EXPECT_LE(wrong, full.count() / 100'000);  // sums that are 0 up to rounding
  });
}

TEST_P(Fused, BackwardData) {
  for_each_problem([&](const Conv2dCase& c, const Problem& p) {
    const Doubles expected = reference::conv2d_backward_data(p.spec, p.x_shape, p.w_shape,
                                                             to_double(p.w), p.inner_gradient());
    for (const float beta : {0.0F, 0.5F}) {
      const auto old = old_gradient(p.x_shape.count(), beta);
      const Tensor dx = run([&](Device& device) {
        const Result result = forward(device, p);
        Tensor gradient_of_x = gradient(device, p.x_shape, old);
        conv2d_relu_avg_pool2d_backward_data(
            device.compute(), p.spec, upload(device, p.w_shape, p.w),
            gradient(device, p.y_shape, p.dy), result.mask, beta, gradient_of_x);
        return gradient_of_x;
      });
      expect_close(dx, blended(beta, old, expected), c.tolerance);
      expect_padding_zero(dx);
    }
  });
}

TEST_P(Fused, BackwardFilterAndBias) {
  for_each_problem([&](const Conv2dCase& c, const Problem& p) {
    const Doubles inner = p.inner_gradient();
    const Doubles dw_expected =
        reference::conv2d_backward_filter(p.spec, p.x_shape, p.w_shape, to_double(p.x), inner);
    const Doubles db_expected = reference::bias_backward(p.full, inner);
    for (const float beta : {0.0F, 0.5F}) {
      const float beta_db = 1 - beta;  // the two are independent
      const auto old_dw = old_gradient(p.w_shape.count(), beta);
      const auto old_db = old_gradient(p.w_shape[0], beta_db);
      const std::int64_t dw_end = p.w_shape.count(), db_end = dw_end + p.w_shape[0];
      const Tensor both = run([&](Device& device) {
        Tensor result(device, {db_end});
        const View dw = result.view().slice(0, dw_end).reshaped(p.w_shape);
        const View db = result.view().slice(dw_end, db_end);
        write(dw, old_dw);
        write(db, old_db);
        const Result made = forward(device, p);
        conv2d_relu_avg_pool2d_backward_filter(
            device.compute(), p.spec, input(device, p.x_shape, p.x),
            gradient(device, p.y_shape, p.dy), made.mask, beta, dw, beta_db, db);
        return result;
      });
      const ConstView dw = both.view().slice(0, dw_end);
      const ConstView db = both.view().slice(dw_end, db_end);
      const std::int64_t terms = p.full.count() / p.full[1];
      expect_close(dw, blended(beta, old_dw, dw_expected), sum_tolerance(c.tolerance, terms));
      expect_close(db, blended(beta_db, old_db, db_expected), c.tolerance);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Setups, Fused, ::testing::ValuesIn(setups_of(Layout::lanes)), name_of);

/// More channels than are summed at once (gather_plan.cc), so that sums go by way of memory.
class ManyChannels : public OperationTest {
 protected:
  static constexpr std::int64_t kMany = 300;
  static constexpr double kTolerance = 2e-6;
};

TEST_P(ManyChannels, Forward) {
  const Shape x_shape{17, kMany, 5, 6}, w_shape{3, kMany, 5, 5}, y_shape{17, 3, 1, 2};
  const auto x = random_floats(x_shape.count(), 1), w = random_floats(w_shape.count(), 2);
  const auto b = random_floats(3, 3);
  const Tensor y = run([&](Device& device) {
    Tensor result = output(device, y_shape);
    conv2d_forward(device.compute(), {}, input(device, x_shape, x), upload(device, w_shape, w),
                   upload(device, {3}, b), Activation::relu, result);
    return result;
  });
  const Doubles sum = reference::bias_forward(
      y_shape, reference::conv2d_forward({}, x_shape, w_shape, to_double(x), to_double(w)),
      to_double(b));
  expect_close(y, reference::relu_forward(sum), kTolerance);
}

TEST_P(ManyChannels, BackwardData) {
  const Shape x_shape{17, 3, 5, 6}, w_shape{kMany, 3, 5, 5}, y_shape{17, kMany, 1, 2};
  const auto dy = random_floats(y_shape.count(), 1), w = random_floats(w_shape.count(), 2);
  const auto expected =
      reference::conv2d_backward_data({}, x_shape, w_shape, to_double(w), to_double(dy));
  for (const float beta : kBetas) {
    const auto old = old_gradient(x_shape.count(), beta);
    const Tensor dx = run([&](Device& device) {
      Tensor result = gradient(device, x_shape, old);
      conv2d_backward_data(device.compute(), {}, upload(device, w_shape, w),
                           gradient(device, y_shape, dy), beta, result);
      return result;
    });
    expect_close(dx, blended(beta, old, expected), kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, ManyChannels, ::testing::ValuesIn(setups_of(Layout::lanes)),
                         name_of);

TEST(FusedContract, IsForTheLayoutLanesAlone) {
  EXPECT_TRUE(conv2d_relu_avg_pool2d_supported(DeviceKind::cpu, Layout::lanes, {}));
  EXPECT_FALSE(conv2d_relu_avg_pool2d_supported(DeviceKind::cpu, Layout::nchw, {}));
  EXPECT_FALSE(conv2d_relu_avg_pool2d_supported(DeviceKind::cuda, Layout::lanes, {}));
  const auto device = open_device({});
  const Tensor x(*device, {1, 1, 4, 4}), w(*device, {1, 1, 3, 3});
  const Tensor y(*device, {1, 1, 1, 1}), mask(*device, {8}, DType::u8);
  EXPECT_THROW(conv2d_relu_avg_pool2d_forward(device->compute(), {}, x, w, {}, y, mask),
               ContractError);
}

TEST(FusedContract, NamesAResultTooSmallToPool) {
  EXPECT_THROW((void)conv2d_relu_avg_pool2d_output_shape({}, {1, 1, 3, 5}, {1, 1, 3, 3}),
               ContractError);
}

TEST(FusedContract, RunsOnTheMetaDevice) {
  const auto device = open_device({DeviceKind::meta, 0});
  const Tensor x(*device, {20, 1, 28, 28}, DType::f32, Layout::lanes), w(*device, {20, 1, 3, 3});
  const Tensor y(*device, {20, 20, 13, 13}, DType::f32, Layout::lanes);
  const Tensor mask(*device, conv2d_relu_avg_pool2d_mask_shape(y.shape()), DType::u8);
  EXPECT_EQ(mask.shape(), (Shape{2 * 20 * 13 * 13 * 8}));
  WorkTotals totals;
  device->compute().set_totals(&totals);
  conv2d_relu_avg_pool2d_forward(device->compute(), {}, x, w, {}, y, mask);
  EXPECT_EQ(totals.flops, 2.0 * 20 * 20 * 26 * 26 * 9);
}

}  // namespace
}  // namespace ringlet::test
