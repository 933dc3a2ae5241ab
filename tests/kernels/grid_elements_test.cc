// kernels/grid/: element by element, on the host (grid_fixture.h), compared with the references.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/grid/batch_norm.h"
#include "kernels/grid/bias.h"
#include "kernels/grid/concat.h"
#include "kernels/grid/dropout.h"
#include "kernels/grid/elementwise.h"
#include "kernels/grid/pool2d.h"
#include "kernels/grid/reduce.h"
#include "tests/kernels/grid_fixture.h"
#include "tests/reference/elements.h"
#include "tests/reference/pool2d.h"

namespace ringlet::test {
namespace {

TEST_P(Grid, Elementwise) {
  for (const std::int64_t n : {0, 1, 3, 4, 1027}) {
    const auto a = random_floats(n, 1), b = random_floats(n, 2);
    std::vector<float> sum(a.size()), blended_sum(a.size()), tripled(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum[i] = a[i] + b[i];
      blended_sum[i] = 0.5F * b[i] + 3.0F * a[i];
      tripled[i] = 3.0F * a[i];
    }
    const View y = blank({n}), left = put({n}, a), right = put({n}, b);
    grid::add(grid_, left, right, y);
    EXPECT_EQ(read(y), sum);
    grid::accumulate(grid_, left, right);
    EXPECT_EQ(read(right), sum);
    const View scaled = put({n}, b);
    grid::scale(grid_, 3, left, 0.5F, scaled);
    EXPECT_LE(relative_l2(read(scaled), blended_sum), 1e-7);
    const View fresh = blank({n});
    grid::scale(grid_, 3, left, 0, fresh);
    EXPECT_EQ(read(fresh), tripled);
    grid::scale(grid_, 3, left, 0, left);
    EXPECT_EQ(read(left), tripled);
    grid::fill(grid_, 2.5F, y);
    EXPECT_EQ(read(y), std::vector<float>(a.size(), 2.5F));
    const View whole = filled<std::int32_t>({n}, -1);
    grid::fill(grid_, 7, whole);
    EXPECT_EQ(read<std::int32_t>(whole), std::vector<std::int32_t>(a.size(), 7));
  }
}

TEST_P(Grid, SigmoidAndTanh) {
  for (const std::int64_t n : {0, 1, 3, 4, 1027}) {
    const auto x = random_floats(n, 1, -9, 9), dy = random_floats(n, 2);
    const View in = put({n}, x), gradient = put({n}, dy), y = blank({n});
    const auto expect_gradient = [&](auto backward, const std::vector<double>& expected) {
      for (const float beta : kBetas) {
        const auto old = old_gradient(n, beta);
        const View dx = put({n}, old);
        backward(beta, dx);
        EXPECT_LE(error_of(dx, blended(beta, old, expected)), 1e-6);
      }
    };
    grid::sigmoid_forward(grid_, in, y);
    EXPECT_LE(error_of(y, reference::sigmoid_forward(to_double(x))), 1e-6);
    expect_gradient(
        [&](float beta, const View& dx) { grid::sigmoid_backward(grid_, y, gradient, beta, dx); },
        reference::sigmoid_backward(to_double(read(y)), to_double(dy)));
    grid::tanh_forward(grid_, in, y);
    EXPECT_LE(error_of(y, reference::tanh_forward(to_double(x))), 1e-6);
    expect_gradient(
        [&](float beta, const View& dx) { grid::tanh_backward(grid_, y, gradient, beta, dx); },
        reference::tanh_backward(to_double(read(y)), to_double(dy)));
  }
}

TEST_P(Grid, Concat) {
  for (const std::int64_t n : {0, 1, 17}) {
    const Shape a{n, 2, 3, 4}, b{n, 3, 3, 4}, both{n, 5, 3, 4};
    const auto left = random_floats(a.count(), 1), right = random_floats(b.count(), 2);
    std::vector<float> expected(static_cast<std::size_t>(both.count()));
    reference::concat_forward(24, left, 0, 60, expected);
    reference::concat_forward(36, right, 24, 60, expected);
    const View y = blank(both);
    grid::concat_forward(grid_, put(a, left), 0, y);
    grid::concat_forward(grid_, put(b, right), 2, y);
    EXPECT_EQ(read(y), expected);
    for (const float beta : kBetas) {
      const auto old = old_gradient(b.count(), beta);
      const View dx = put(b, old);
      grid::concat_backward(grid_, y, 2, beta, dx);
      EXPECT_LE(error_of(dx, blended(beta, old, to_double(right))), 1e-7);
    }
  }
}

TEST_P(Grid, Cast) {
  for (const std::int64_t n : {0, 1, 3, 4, 1027}) {
    const auto x = random_floats(n, 1);
    std::vector<Half> half(x.size());
    std::vector<BFloat16> brain(x.size());
    std::vector<float> from_half(x.size()), from_brain(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      half[i] = to_half(x[i]);
      brain[i] = to_bfloat16(x[i]);
      from_half[i] = widen(half[i]);
      from_brain[i] = widen(brain[i]);
    }
    const View wide = put({n}, x), back = blank({n});
    const View halves = filled<Half>({n}, {}), brains = filled<BFloat16>({n}, {});
    grid::cast(grid_, wide, halves);
    grid::cast(grid_, wide, brains);
    const auto narrowed_half = read<Half>(halves);
    const auto narrowed_brain = read<BFloat16>(brains);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(narrowed_half[i].bits, half[i].bits);
      EXPECT_EQ(narrowed_brain[i].bits, brain[i].bits);
    }
    grid::cast(grid_, halves, back);
    EXPECT_EQ(read(back), from_half);
    grid::cast(grid_, brains, back);
    EXPECT_EQ(read(back), from_brain);
  }
}

TEST_P(Grid, TwoCastsAsOne) {
  for (const std::int64_t first : {0, 1, 8, 1024}) {
    for (const std::int64_t second : {0, 5, 12}) {
      const auto a = random_floats(first, 1), b = random_floats(second, 2);
      std::vector<BFloat16> narrow_a, narrow_b;
      for (const float value : a) narrow_a.push_back(to_bfloat16(value));
      for (const float value : b) narrow_b.push_back(to_bfloat16(value));
      const View wide_a = blank({first}), wide_b = blank({second});
      grid::cast_pair(grid_, put({first}, narrow_a), wide_a, put({second}, narrow_b), wide_b);
      const auto found_a = read(wide_a), found_b = read(wide_b);
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(found_a[i], widen(narrow_a[i]));
      for (std::size_t i = 0; i < b.size(); ++i) EXPECT_EQ(found_b[i], widen(narrow_b[i]));
    }
  }
}

template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
  std::vector<T> narrow;
  for (const float value : values) narrow.push_back(reduction::round_to<T>(value));
  return narrow;
}

template <class T>
std::vector<float> widened(const std::vector<T>& values) {
  std::vector<float> wide;
  for (const T value : values) wide.push_back(reduction::load(value));
  return wide;
}

TEST_P(Grid, NarrowElementsAreRoundedOnce) {
  const auto check = [this]<class T>(T) {
    for (const std::int64_t n : {0, 1, 7, 8, 1027}) {
      const auto a = rounded<T>(random_floats(n, 1)), b = rounded<T>(random_floats(n, 2));
      const auto wide_a = widened(a), wide_b = widened(b);
      std::vector<float> sum(a.size()), blended_sum(a.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        sum[i] = wide_a[i] + wide_b[i];
        blended_sum[i] = 0.5F * wide_b[i] + 3.0F * wide_a[i];
      }
      const View y = filled<T>({n}, {}), left = put({n}, a), right = put({n}, b);
      grid::add(grid_, left, right, y);
      EXPECT_EQ(widened(read<T>(y)), widened(rounded<T>(sum)));
      grid::scale(grid_, 3, left, 0.5F, right);
      EXPECT_EQ(widened(read<T>(right)), widened(rounded<T>(blended_sum)));
    }
    for (const std::int64_t channels : {8, 16, 3}) {
      const Shape shape{3, channels, 4, 6}, half{3, channels, 2, 3};
      const auto x = rounded<T>(random_floats(shape.count(), 1));
      const View y = filled<T>(half, {});
      grid::avg_pool2d_forward(grid_, {}, put(shape, x), y);
      const auto exact = reference::avg_pool2d_forward({}, shape, to_double(widened(x)));
      const std::vector<float> expected(exact.begin(), exact.end());
      EXPECT_EQ(widened(read<T>(y)), widened(rounded<T>(expected)));
    }
  };
  check(BFloat16{});
  check(Half{});
}

// What a thread has several channels or groups of gives what f32 gives, rounded.
TEST_P(Grid, NarrowPacksOfChannelsAndGroups) {
  const auto check = [this]<class T>(T) {
    for (const Shape& shape : {Shape{1, 7}, Shape{17, 10}, Shape{300, 12}, Shape{33, 16}}) {
      SCOPED_TRACE(shape.to_string());
      const Shape channels{shape[1]}, moments_shape{2, shape[1]};
      const auto x = rounded<T>(random_floats(shape.count(), 1));
      const auto dy = rounded<T>(random_floats(shape.count(), 2));
      const View narrow_x = put(shape, x), wide_x = put(shape, widened(x));
      const View narrow_dy = put(shape, dy), wide_dy = put(shape, widened(dy));
      const auto expect_rounded = [](const View& narrow, const View& wide) {
        EXPECT_EQ(widened(read<T>(narrow)), widened(rounded<T>(read(wide))));
      };
      const View db = blank(channels), wide_db = blank(channels);
      grid::bias_backward(grid_, narrow_dy, 0, db);
      grid::bias_backward(grid_, wide_dy, 0, wide_db);
      EXPECT_LE(relative_l2(read(db), read(wide_db)), 1e-6);

      const View moments = blank(moments_shape), wide_moments = blank(moments_shape);
      grid::batch_norm_moments(grid_, narrow_x, moments);
      grid::batch_norm_moments(grid_, wide_x, wide_moments);
      EXPECT_LE(relative_l2(read(moments), read(wide_moments)), 1e-6);
      BatchNorm norm{.activation = Activation::relu,
                     .count = static_cast<double>(shape[0]),
                     .x = narrow_x,
                     .statistics = wide_moments,
                     .weight = put(channels, random_floats(shape[1], 3, 0.5F, 2)),
                     .bias = put(channels, random_floats(shape[1], 4))};
      const View y = filled<T>(shape, {}), wide_y = blank(shape), dx = filled<T>(shape, {});
      const View wide_dx = blank(shape), sums = blank(moments_shape);
      const View wide_sums = blank(moments_shape);
      grid::batch_norm_forward(grid_, norm, narrow_dy, y);
      grid::batch_norm_backward_sums(grid_, norm, {}, narrow_dy, {}, sums);
      norm.x = wide_x;
      grid::batch_norm_forward(grid_, norm, wide_dy, wide_y);
      grid::batch_norm_backward_sums(grid_, norm, {}, wide_dy, {}, wide_sums);
      grid::batch_norm_backward_data(grid_, norm, wide_dy, wide_sums, 0, wide_dx);
      norm.x = narrow_x;
      grid::batch_norm_backward_data(grid_, norm, narrow_dy, wide_sums, 0, dx);
      expect_rounded(y, wide_y);
      expect_rounded(dx, wide_dx);
      EXPECT_LE(relative_l2(read(sums), read(wide_sums)), 1e-6);

      const DropoutSpec dropout{0.4F, 0x123456789ABCDEF0U, 1000};
      grid::dropout_forward(grid_, dropout, narrow_x, y);
      grid::dropout_forward(grid_, dropout, wide_x, wide_y);
      expect_rounded(y, wide_y);
      grid::bias_relu_backward(grid_, narrow_x, narrow_dy, dx, 0, db);
      grid::bias_relu_backward(grid_, wide_x, wide_dy, wide_dx, 0, wide_db);
      expect_rounded(dx, wide_dx);
      EXPECT_LE(relative_l2(read(db), read(wide_db)), 1e-6);
    }
    for (const std::int64_t channels : {6, 5}) {
      const Shape shape{17, channels, 5, 4}, half{17, channels, 2, 2}, of_bias{channels};
      const auto a = rounded<T>(random_floats(shape.count(), 1));
      const auto dy = rounded<T>(random_floats(half.count(), 2));
      const View narrow = put(shape, a), wide = put(shape, widened(a));
      const View db = blank(of_bias), wide_db = blank(of_bias);
      grid::bias_relu_avg_pool2d_backward(grid_, put(half, dy), narrow, 0, db);
      grid::bias_relu_avg_pool2d_backward(grid_, put(half, widened(dy)), wide, 0, wide_db);
      EXPECT_EQ(widened(read<T>(narrow)), widened(rounded<T>(read(wide))));
      EXPECT_LE(relative_l2(read(db), read(wide_db)), 1e-6);
    }
  };
  check(BFloat16{});
  check(Half{});
}

TEST_P(Grid, Reduce) {
  for (const std::int64_t n : {0, 1, 3, 4, 1027}) {
    const auto a = random_floats(n, 1), b = random_floats(n, 2), c = random_floats(n, 3);
    std::vector<float> mean(a.size()), least(a.size());
    std::vector<BFloat16> narrow(a.size()), twice(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      mean[i] = (a[i] + b[i] + c[i]) / 3.0F;
      least[i] = std::min(a[i], mean[i]);
      narrow[i] = to_bfloat16(a[i]);
      twice[i] = to_bfloat16(2 * widen(narrow[i]));
    }
    const ConstView xs[] = {put({n}, a), put({n}, b), put({n}, c)};
    const View ys[] = {blank({n}), blank({n})};
    grid::reduce(grid_, ReduceOp::mean, xs, ys, {.divisor = 3});
    EXPECT_EQ(read(ys[0]), mean);
    EXPECT_EQ(read(ys[1]), mean);
    const ConstView both[] = {ys[0], xs[0]};
    grid::reduce(grid_, ReduceOp::min, both, {ys, 1}, {});
    EXPECT_EQ(read(ys[0]), least);
    const View brain = put({n}, narrow);
    const ConstView same[] = {brain, brain};
    grid::reduce(grid_, ReduceOp::sum, same, {&brain, 1}, {});
    const auto sums = read<BFloat16>(brain);
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i].bits, twice[i].bits);
  }
}

TEST_P(Grid, Relu) {
  for (const std::int64_t n : kSomeBatches) {
    const Shape shape{n, 3, 5, 7};
    const auto x = random_floats(shape.count(), 1), dy = random_floats(shape.count(), 2);
    const auto expected = reference::relu_forward(x);
    const View y = blank(shape);
    grid::relu_forward(grid_, put(shape, x), y);
    EXPECT_EQ(read(y), expected);
    for (const float beta : kBetas) {
      const auto old = old_gradient(shape.count(), beta);
      const View dx = put(shape, old);
      grid::relu_backward(grid_, y, put(shape, dy), beta, dx);
      const auto gradient = reference::relu_backward(to_double(expected), to_double(dy));
      EXPECT_LE(error_of(dx, blended(beta, old, gradient)), 1e-7);
    }
  }
}

TEST_P(Grid, Dropout) {
  for (const Shape& sample : {Shape{1, 1}, Shape{1, 10}, Shape{1, 12}, Shape{1, 3, 2, 5}}) {
    for (const std::int64_t n : kSomeBatches) {
      const Shape shape = sample.with_batch(n);
      SCOPED_TRACE(shape.to_string());
      const DropoutSpec spec{0.4F, 0x123456789ABCDEF0U, 1000};
      const auto x = random_floats(shape.count(), 1);
      const auto expected = reference::dropout(spec, shape.count_per_sample(), to_double(x));
      const View y = blank(shape);
      grid::dropout_forward(grid_, spec, put(shape, x), y);
      EXPECT_LE(error_of(y, expected), 1e-6);
      const BatchPosition position{0, 900};
      const ConstView at(&position, batch_position_shape(), DType::u8);
      grid::dropout_forward(grid_, {spec.probability, spec.key, 100, at}, put(shape, x), y);
      EXPECT_LE(error_of(y, expected), 1e-6);
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape.count(), beta);
        const View dx = put(shape, old);
        grid::dropout_backward(grid_, spec, put(shape, x), beta, dx);
        EXPECT_LE(error_of(dx, blended(beta, old, expected)), 1e-6);
      }
    }
  }
}

TEST_P(Grid, Normalize) {
  for (const std::int64_t n : kSomeBatches) {
    const Shape shape{n, 2, 3, 5};
    std::vector<std::uint8_t> x;
    for (const auto value : random_labels(shape.count(), 1, 256)) {
      x.push_back(static_cast<std::uint8_t>(value));
    }
    const Normalization normalization{0.286F, 0.353F};
    const View y = blank(shape);
    grid::normalize_forward(grid_, normalization, put(shape, x), y);
    EXPECT_EQ(read(y), reference::normalize_forward<float>(normalization, x));
  }
}

}  // namespace
}  // namespace ringlet::test
