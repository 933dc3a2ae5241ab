// The GPU's kernels on the host: every thread of every grid, in shuffled orders (host_grid.h), over
// the shapes of the operations' tests, compared with the references. Memory is aligned as packs
// need it, and also off by one element.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "kernels/grid/adamw.h"
#include "kernels/grid/batch_norm.h"
#include "kernels/grid/bias.h"
#include "kernels/grid/classify.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/dropout.h"
#include "kernels/grid/elementwise.h"
#include "kernels/grid/gather_batch.h"
#include "kernels/grid/l2_norm.h"
#include "kernels/grid/loss_scale.h"
#include "kernels/grid/pool2d.h"
#include "kernels/grid/reduce.h"
#include "kernels/grid/running_statistics.h"
#include "kernels/grid/sgd.h"
#include "kernels/grid/softmax_cross_entropy.h"
#include "kernels/grid/transpose.h"
#include "kernels/reference/batch_norm.h"
#include "kernels/reference/bias.h"
#include "kernels/reference/classify.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/pool2d.h"
#include "kernels/reference/softmax_cross_entropy.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/gather_cases.h"
#include "tests/kernels/harness.h"
#include "tests/support/host_grid.h"
#include "tests/support/tensors.h"

namespace ringlet::test {
namespace {

struct Way {
  const char* name;
  std::uint32_t seed;            // of the threads' order
  std::int64_t offset;           // elements between an aligned address and the tensors'
  Layout layout = Layout::nchw;  // of images
};

class Grid : public testing::TestWithParam<Way> {
 protected:
  /// A tensor with these values, which lives as long as the test.
  template <class T>
  View put(const Shape& shape, const std::vector<T>& values) {
    const View view = place(shape, DTypeOf<T>::value);
    write(view, values);
    return view;
  }
  /// A result that nobody has written.
  View blank(const Shape& shape) {
    return put(shape, std::vector<float>(static_cast<std::size_t>(shape.count()), kNaN));
  }
  template <class T>
  View filled(const Shape& shape, T value) {
    return put(shape, std::vector<T>(static_cast<std::size_t>(shape.count()), value));
  }

  static View in_nchw(const View& view) {
    return {view.data(), view.shape(), view.dtype(), Layout::nchw};
  }

  Layout layout() const { return GetParam().layout; }
  /// With other numbers of channels where these lie side by side: whole packs of them.
  std::vector<Shape> with_packs_of_channels(const Shape& shape) const {
    if (layout() == Layout::nchw) return {shape};
    return {shape, {shape[0], 4 * shape[1], shape[2], shape[3]}};
  }

  std::vector<Shape> batches_of(const Pool2dCase& c) const {
    std::vector<Shape> shapes;
    for (const std::int64_t n : {0, 1, 5}) {
      for (const Shape& shape : with_packs_of_channels(c.x.with_batch(n))) shapes.push_back(shape);
    }
    return shapes;
  }

  HostGrid grid_{GetParam().seed};

 private:
  View place(const Shape& shape, DType dtype) {
    const std::int64_t offset = GetParam().offset;
    const Tensor& memory = tensors_.emplace_back(*device_, Shape{shape.count() + offset}, dtype);
    const View flat = memory.view().slice(offset, shape.count() + offset);
    const bool is_image = shape.rank() == 4 && dtype != DType::u8;  // data sets are nchw
    return {flat.data(), shape, dtype, is_image ? layout() : Layout::nchw};
  }

  std::unique_ptr<Device> device_ = open_device({}, {1, false});
  std::deque<Tensor> tensors_;
};

constexpr std::int64_t kCountOfSkipped = 37;
const std::vector<std::int64_t> kSomeBatches = {0, 1, 17, 96};

double error_of(const View& actual, const std::vector<double>& expected) {
  return relative_l2(read(actual), expected);
}

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

TEST_P(Grid, Bias) {
  std::vector<Shape> shapes = bias_shapes();
  shapes.push_back({1, 3, 0, 4});
  for (const Shape& sample : shapes) {
    for (const std::int64_t n : kSomeBatches) {
      const Shape shape = sample.with_batch(n), channels{shape[1]};
      SCOPED_TRACE(shape.to_string());
      const auto x = random_floats(shape.count(), 1, -0.5F, 1), b = random_floats(shape[1], 2);
      const View y = blank(shape);
      grid::bias_forward(grid_, put(shape, x), put(channels, b), y);
      if (shape.count() > 0) {
        EXPECT_EQ(read(y), reference::bias_forward(shape, x, b));
      }
      const auto expected = reference::bias_backward(shape, to_double(x));
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape[1], beta);
        const View db = put(channels, old);
        grid::bias_backward(grid_, put(shape, x), beta, db);
        EXPECT_LE(error_of(db, blended(beta, old, expected)), 1e-6);
      }
    }
  }
}

std::vector<Shape> normalized_shapes() {
  return {{5, 1}, {33, 10}, {33, 12}, {20, 7, 1, 1}, {17, 3, 5, 7}, {96, 2, 4, 4}, {1, 2, 40, 40}};
}

TEST_P(Grid, BatchNormMoments) {
  for (const Shape& shape : normalized_shapes()) {
    SCOPED_TRACE(shape.to_string());
    const auto x = random_floats(shape.count(), 1, 9999, 10001);
    const View moments = blank({2, shape[1]});
    grid::batch_norm_moments(grid_, put(shape, x), moments);
    const auto expected = reference::moments_of(shape, to_double(x));
    const auto found = read(moments);
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      const auto i = static_cast<std::size_t>(c);
      EXPECT_NEAR(static_cast<double>(found[i]), expected.mean[i], 6e-4);
      EXPECT_NEAR(static_cast<double>(found[i + expected.mean.size()]) / expected.squares[i], 1,
                  1e-6);
    }
  }
  const View moments = blank({2, 3});
  grid::batch_norm_moments(grid_, blank({0, 3, 2, 2}), moments);
  EXPECT_EQ(read(moments), std::vector<float>(6));
}

TEST_P(Grid, BatchNorm) {
  for (const Shape& shape : normalized_shapes()) {
    for (const bool residual : {false, true}) {
      SCOPED_TRACE(shape.to_string());
      const Shape channels{shape[1]};
      const auto x = random_floats(shape.count(), 1), added = random_floats(shape.count(), 2);
      const auto w = random_floats(shape[1], 3, 0.5F, 2), b = random_floats(shape[1], 4);
      const auto dy = random_floats(shape.count(), 5, -0.5F, 1);
      const auto of_x = reference::moments_of(shape, to_double(x));
      auto y64 = reference::batch_norm_forward(shape, of_x, 1e-5, to_double(w), to_double(b),
                                               to_double(x));
      for (std::size_t i = 0; i < y64.size() && residual; ++i) y64[i] += added[i];
      y64 = reference::relu_forward(y64);
      const auto dz64 = reference::relu_backward(y64, to_double(dy));
      const auto expected =
          reference::batch_norm_backward(shape, of_x, 1e-5, to_double(w), to_double(x), dz64);

      const View moments = blank({2, shape[1]}), y = blank(shape), sums = blank({2, shape[1]});
      BatchNorm norm{.activation = Activation::relu,
                     .count = of_x.count,
                     .x = put(shape, x),
                     .statistics = moments,
                     .weight = put(channels, w),
                     .bias = put(channels, b)};
      grid::batch_norm_moments(grid_, norm.x, moments);
      grid::batch_norm_forward(grid_, norm, residual ? put(shape, added) : View(), y);
      EXPECT_LE(error_of(y, y64), 1e-6);

      const View gradient = put(shape, dy), dz = residual ? gradient : View();
      grid::batch_norm_backward_sums(grid_, norm, residual ? ConstView(y) : ConstView(), gradient,
                                     dz, sums);
      auto both = expected.bias;
      both.insert(both.end(), expected.weight.begin(), expected.weight.end());
      EXPECT_LE(error_of(sums, both), 2e-6);
      const auto rest = grid::behind_the_sums(norm, gradient, dz);
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape.count(), beta);
        const View dx = put(shape, old);
        grid::batch_norm_backward_data(grid_, rest.norm, rest.gradient, sums, beta, dx);
        EXPECT_LE(error_of(dx, blended(beta, old, expected.dx)), 4e-6);
      }
      const View dx = blank(shape);
      grid::batch_norm_backward_data(grid_, rest.norm, rest.gradient, {}, 0, dx);
      const auto constant =
          reference::batch_norm_backward(shape, of_x, 1e-5, to_double(w), to_double(x), dz64, true);
      EXPECT_LE(error_of(dx, constant.dx), 2e-6);
    }
  }
}

// Of so many rows a thread has several, of a few rows one. No row may see the difference.
TEST_P(Grid, BatchNormOfManyRowsHasTheBitsOfFew) {
  constexpr std::int64_t kRows = 65539, kFew = 5, kChannels = 16;
  const auto x = random_floats(kRows * kChannels, 1), dy = random_floats(kRows * kChannels, 2);
  BatchNorm norm{.activation = Activation::relu,
                 .count = kRows,
                 .statistics = put({2, kChannels}, random_floats(2 * kChannels, 3, 0, 1))};
  const auto run = [&](std::int64_t first, std::int64_t rows) {
    const auto part = [&](const std::vector<float>& of) {
      const auto begin = of.begin() + first * kChannels;
      return put({rows, kChannels}, std::vector<float>(begin, begin + rows * kChannels));
    };
    norm.x = part(x);
    const View y = blank({rows, kChannels}), dx = blank({rows, kChannels});
    grid::batch_norm_forward(grid_, norm, {}, y);
    grid::batch_norm_backward_data(grid_, norm, part(dy), {}, 0, dx);
    return std::pair{read(y), read(dx)};
  };
  const auto [y, dx] = run(0, kRows);
  for (const std::int64_t first : {std::int64_t{0}, kRows / 2, kRows - kFew}) {
    const auto [few_y, few_dx] = run(first, kFew);
    EXPECT_TRUE(std::equal(few_y.begin(), few_y.end(), y.begin() + first * kChannels));
    EXPECT_TRUE(std::equal(few_dx.begin(), few_dx.end(), dx.begin() + first * kChannels));
  }
  EXPECT_TRUE(std::none_of(y.begin(), y.end(), [](float value) { return std::isnan(value); }));
  EXPECT_TRUE(std::none_of(dx.begin(), dx.end(), [](float value) { return std::isnan(value); }));
}

TEST_P(Grid, RunningStatistics) {
  const View update = filled<float>({7}, 0), running = filled<float>({4}, 1);
  const View counter = filled<std::int32_t>({1}, 3);
  const View places = put<std::int32_t>({7, 2}, {0, 4, 1, 4, 2, 4, 3, 4, -2, 4, -1, 4, -1, 4});
  grid::running_statistics_track(grid_, {.count = 5}, put<float>({2, 2}, {2, 3, 8, 16}), update);
  grid::running_statistics_commit(grid_, update, places, running, counter);
  const std::vector<double> expected{0.9 + 0.2, 0.9 + 0.3, 0.9 + 0.2, 0.9 + 0.4};
  EXPECT_LE(error_of(running, expected), 1e-6);
  EXPECT_EQ(read<std::int32_t>(counter), std::vector<std::int32_t>{4});
}

TEST_P(Grid, AveragePool) {
  for (const Pool2dCase& c : pool2d_cases()) {
    for (const Shape& x_shape : batches_of(c)) {
      const Shape y_shape = pool2d_output_shape(c.spec, x_shape);
      SCOPED_TRACE(std::string(c.name) + " " + x_shape.to_string());
      const auto x = random_floats(x_shape.count(), 1), dy = random_floats(y_shape.count(), 2);
      const View y = blank(y_shape);
      grid::avg_pool2d_forward(grid_, c.spec, put(x_shape, x), y);
      EXPECT_LE(error_of(y, reference::avg_pool2d_forward(c.spec, x_shape, to_double(x))),
                c.tolerance);
      if (layout() == Layout::nhwc && c.spec == Pool2dSpec{}) {
        const View rows = in_nchw(blank(y_shape));
        grid::avg_pool2d_forward(grid_, c.spec, put(x_shape, x), rows);
        EXPECT_EQ(read(rows), read(y));
      }
      const auto expected = reference::avg_pool2d_backward(c.spec, x_shape, to_double(dy));
      for (const float beta : kBetas) {
        const auto old = old_gradient(x_shape.count(), beta);
        const View dx = put(x_shape, old);
        grid::avg_pool2d_backward(grid_, c.spec, put(y_shape, dy), beta, dx);
        EXPECT_LE(error_of(dx, blended(beta, old, expected)), c.tolerance);
      }
    }
  }
}

/// Numbers with which rounding, signs of zero and infinities show.
std::vector<float> awkward_floats(std::int64_t count, std::uint32_t seed) {
  auto values = random_floats(count, seed);
  for (std::size_t i = 0; i < values.size(); i += 5) {
    const float some[] = {-0.0F, 1e-45F, -1e-40F, std::numeric_limits<float>::infinity()};
    values[i] = some[i / 5 % 4];
  }
  return values;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// Images whose 2 x 2 windows, or channels in nhwc, are whole packs, pairs, and neither, with and
/// without odd edges.
std::vector<Shape> halved_shapes(Layout layout) {
  const std::int64_t channels = layout == Layout::nhwc ? 8 : 3;
  std::vector<Shape> shapes;
  for (const std::int64_t n : {0, 1, 3, 40}) {
    for (const auto& [h, w] : {std::pair{2, 2}, {8, 8}, {26, 26}, {6, 7}, {7, 6}, {5, 5}, {3, 2}}) {
      shapes.push_back({n, h == 5 ? 3 : channels, h, w});
    }
  }
  return shapes;
}

TEST_P(Grid, PoolingBackwardHasTheReferencesBits) {
  for (const Shape& x_shape : halved_shapes(layout())) {
    SCOPED_TRACE(x_shape.to_string());
    const Shape y_shape = pool2d_output_shape({}, x_shape);
    const auto x = random_floats(x_shape.count(), 1), dy = awkward_floats(y_shape.count(), 2);
    const View y = blank(y_shape), winner = filled<std::int32_t>(y_shape, -1);
    grid::max_pool2d_forward(grid_, {}, put(x_shape, x), y, winner);
    const View average = blank(x_shape), maximum = blank(x_shape);
    grid::avg_pool2d_backward(grid_, {}, put(y_shape, dy), 0, average);
    grid::max_pool2d_backward(grid_, {}, put(y_shape, dy), winner, 0, maximum);
    EXPECT_EQ(bits_of(read(average)), bits_of(reference::avg_pool2d_backward({}, x_shape, dy)));
    EXPECT_EQ(bits_of(read(maximum)), bits_of(reference::max_pool2d_backward({}, x_shape, x, dy)));
  }
}

TEST_P(Grid, LargeIndicesGiveTheSamePooling) {
  const Pool2dSpec spec{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}};
  const Shape x_shape{2, 3, 9, 7}, y_shape = pool2d_output_shape(spec, x_shape);
  const auto dy = random_floats(y_shape.count(), 2);
  const auto gradient = [&]<class I>(I) {
    const View dx = blank(x_shape);
    grid_.for_each(
        "backward", x_shape.count(),
        grid::PoolBackward<float, I, grid::AverageShare<float>>{
            grid::PoolGeometry<I>(spec, x_shape, y_shape), {put(y_shape, dy).f32()}, 0, dx.f32()});
    return read(dx);
  };
  EXPECT_EQ(gradient(std::int32_t{}), gradient(std::int64_t{}));
  EXPECT_FALSE(grid::has_small_indices({1 << 15, 1, 1 << 8, 1 << 7}));
}

TEST_P(Grid, BiasAndReluAsOneBackward) {
  std::vector<Shape> shapes = bias_shapes();
  shapes.push_back({1, 3, 0, 4});
  for (const Shape& sample : shapes) {
    for (const std::int64_t n : kSomeBatches) {
      const Shape shape = sample.with_batch(n), channels{shape[1]};
      SCOPED_TRACE(shape.to_string());
      const auto a = reference::relu_forward(awkward_floats(shape.count(), 3));
      const auto dy = random_floats(shape.count(), 1, -0.5F, 1);
      const auto dz = reference::relu_backward(a, dy);
      const auto expected = reference::bias_backward(shape, to_double(dz));
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape[1], beta);
        const View gradient = put(shape, dy), db = put(channels, old);
        grid::bias_relu_backward(grid_, put(shape, a), gradient, gradient, beta, db);
        EXPECT_EQ(bits_of(read(gradient)), bits_of(dz));
        EXPECT_LE(error_of(db, blended(beta, old, expected)), 1e-6);
      }
    }
  }
}

TEST_P(Grid, BiasReluAndPoolingAsOneBackward) {
  for (const Shape& shape : halved_shapes(layout())) {
    SCOPED_TRACE(shape.to_string());
    const Shape y_shape = pool2d_output_shape({}, shape), channels{shape[1]};
    const auto a = reference::relu_forward(awkward_floats(shape.count(), 3));
    auto dy = random_floats(y_shape.count(), 1, -0.5F, 1);
    if (!dy.empty()) dy.back() = -0.0F;
    const auto dz = reference::relu_backward(a, reference::avg_pool2d_backward({}, shape, dy));
    const auto expected = reference::bias_backward(shape, to_double(dz));
    for (const float beta : kBetas) {
      const auto old = old_gradient(shape[1], beta);
      const View activations = put(shape, a), db = put(channels, old);
      grid::bias_relu_avg_pool2d_backward(grid_, put(y_shape, dy), activations, beta, db);
      EXPECT_EQ(bits_of(read(activations)), bits_of(dz));
      EXPECT_LE(error_of(db, blended(beta, old, expected)), 1e-6);
    }
    const View activations = put(shape, a);
    grid::bias_relu_avg_pool2d_backward(grid_, put(y_shape, dy), activations, 0, {});
    EXPECT_EQ(bits_of(read(activations)), bits_of(dz));
    if (layout() != Layout::nhwc) continue;
    const View again = put(shape, a), rows = in_nchw(blank(y_shape));  // dy in the other order
    write(rows, dy);
    grid::bias_relu_avg_pool2d_backward(grid_, rows, again, 0, {});
    EXPECT_EQ(bits_of(read(again)), bits_of(dz));
  }
}

TEST_P(Grid, MaximumPool) {
  for (const Pool2dCase& c : pool2d_cases()) {
    for (const Shape& x_shape : batches_of(c)) {
      const Shape y_shape = pool2d_output_shape(c.spec, x_shape);
      SCOPED_TRACE(std::string(c.name) + " " + x_shape.to_string());
      auto x = random_floats(x_shape.count(), 1);
      for (float& value : x) value = std::round(4 * value);  // of equal pixels the first one wins
      const auto dy = random_floats(y_shape.count(), 2);
      const View y = blank(y_shape), winner = filled<std::int32_t>(y_shape, -1);
      grid::max_pool2d_forward(grid_, c.spec, put(x_shape, x), y, winner);
      EXPECT_EQ(read(y), reference::max_pool2d_forward(c.spec, x_shape, x));
      std::vector<std::int32_t> winners;
      for (const auto index : reference::winners_of(c.spec, x_shape, x)) {
        winners.push_back(static_cast<std::int32_t>(index % (x_shape[2] * x_shape[3])));
      }
      EXPECT_EQ(read<std::int32_t>(winner), winners);
      const auto expected =
          reference::max_pool2d_backward(c.spec, x_shape, to_double(x), to_double(dy));
      for (const float beta : kBetas) {
        const auto old = old_gradient(x_shape.count(), beta);
        const View dx = put(x_shape, old);
        grid::max_pool2d_backward(grid_, c.spec, put(y_shape, dy), winner, beta, dx);
        EXPECT_LE(error_of(dx, blended(beta, old, expected)), c.tolerance);
      }
    }
  }
}

TEST_P(Grid, MaximumPoolShowsBrokenNumbers) {
  for (const Pool2dSpec& spec : {Pool2dSpec{}, Pool2dSpec{.kernel = {2, 2}, .stride = {1, 1}}}) {
    for (std::size_t broken = 0; broken < 4; ++broken) {
      std::vector<float> x = {1, 2, 3, 4};
      x[broken] = kNaN;
      const View y = blank({1, 1, 1, 1}), winner = filled<std::int32_t>({1, 1, 1, 1}, -1);
      grid::max_pool2d_forward(grid_, spec, put({1, 1, 2, 2}, x), y, winner);
      EXPECT_TRUE(std::isnan(read(y)[0]));
      EXPECT_EQ(read<std::int32_t>(winner)[0], broken);
    }
  }
}

TEST_P(Grid, SoftmaxCrossEntropy) {
  constexpr float kLossGradient = 0.125F;
  for (const std::int64_t classes : {1, 2, 10, 33, 1000}) {
    for (const std::int64_t n : {0, 1, 17, 300}) {
      const Shape shape{n, classes};
      SCOPED_TRACE(shape.to_string());
      const auto logits = random_floats(shape.count(), 1, -5, 5);
      const auto labels = random_labels(n, 2, static_cast<int>(classes));
      const float smoothing = n == 17 ? 0.1F : 0;
      const View p = blank(shape), loss = blank({1}), label_view = put({n}, labels);
      const View sum = filled({1}, 0.5F);
      grid::softmax_cross_entropy_forward(grid_, put(shape, logits), label_view, p, loss, smoothing,
                                          sum);
      EXPECT_EQ(read(sum)[0], 0.5F + read(loss)[0]);
      EXPECT_LE(error_of(p, reference::softmax(classes, to_double(logits))), 1e-6);
      const double expected = reference::softmax_cross_entropy_forward(
          classes, to_double(logits), labels, static_cast<double>(smoothing));
      EXPECT_NEAR(read(loss)[0], expected, 1e-6 * std::max(1.0, expected));
      const auto gradient = reference::softmax_cross_entropy_backward(
          classes, to_double(logits), labels, static_cast<double>(kLossGradient),
          static_cast<double>(smoothing));
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape.count(), beta);
        const View dz = put(shape, old);
        grid::softmax_cross_entropy_backward(grid_, p, label_view, filled({1}, kLossGradient), beta,
                                             dz, smoothing);
        EXPECT_LE(error_of(dz, blended(beta, old, gradient)), 1e-6);
      }
    }
  }
}

TEST_P(Grid, SoftmaxIsStableAndShowsWhatIsBroken) {
  const auto loss_of = [&](const std::vector<float>& logits, std::int32_t label) {
    const Shape shape{1, static_cast<std::int64_t>(logits.size())};
    const View loss = blank({1});
    grid::softmax_cross_entropy_forward(grid_, put(shape, logits), put<std::int32_t>({1}, {label}),
                                        blank(shape), loss);
    return read(loss)[0];
  };
  EXPECT_EQ(loss_of({1e4F, -1e4F, 0}, 0), 0);
  EXPECT_EQ(loss_of({1e4F, -1e4F, 0}, 1), 2e4F);
  EXPECT_NEAR(loss_of({-1e4F, -1e4F, -1e4F}, 2), std::log(3.0), 1e-6);
  EXPECT_TRUE(std::isnan(loss_of({1, kNaN, 2}, 0)));
  EXPECT_TRUE(std::isnan(loss_of({1, 2, 3}, 3)));
  EXPECT_TRUE(std::isnan(loss_of({1, 2, 3}, -1)));
}

TEST_P(Grid, Classify) {
  for (const std::int64_t classes : {1, 5, 33, 200}) {
    for (const std::int64_t n : kSomeBatches) {
      auto logits = random_floats(n * classes, 1);
      for (float& logit : logits) logit = std::round(8 * logit);  // many equal ones
      for (std::size_t i = 0; i < logits.size(); i += 7) logits[i] = kNaN;
      const auto labels = random_labels(n, 2, static_cast<int>(classes));
      const View count = filled<std::int32_t>({2 * classes}, 0);
      grid::argmax_count(grid_, put({n, classes}, logits), put({n}, labels), count);
      EXPECT_EQ(read<std::int32_t>(count), reference::argmax_count(classes, logits, labels));
    }
  }
  const View count = filled<std::int32_t>({4}, 0);
  grid::argmax_count(grid_, put<float>({3, 2}, {kNaN, kNaN, 0, 1, 0, 1}),
                     put<std::int32_t>({3}, {0, 2, -1}), count);
  EXPECT_EQ(read<std::int32_t>(count), (std::vector<std::int32_t>{1, 0, 0, 0}));
}

TEST_P(Grid, CountNonfinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {0, 1, 6, 255, 5003}) {
    auto x = random_floats(n, 1);
    std::int32_t expected = 0;
    for (std::size_t i = 0; i < x.size(); i += 7, ++expected) {
      x[i] = expected % 3 == 0 ? kNaN : expected % 3 == 1 ? infinity : -infinity;
    }
    const View count = filled<std::int32_t>({1}, -5);
    grid::count_nonfinite(grid_, put({n}, x), count);
    EXPECT_EQ(read<std::int32_t>(count)[0], expected);
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

TEST_P(Grid, Sgd) {
  constexpr std::int64_t kCount = 1003;
  constexpr float kRate = 0.1F;
  for (const bool nesterov : {false, true}) {
    for (const float momentum : {0.0F, 0.9F}) {
      const SgdSpec spec{.weight_decay = 0.1F, .nesterov = nesterov};
      const auto gradient = random_floats(kCount, 2);
      auto value = to_double(random_floats(kCount, 1)),
           velocity = to_double(random_floats(kCount, 3));
      const View value_view = put({kCount}, random_floats(kCount, 1));
      const View velocity_view = put({kCount}, random_floats(kCount, 3));
      reference::sgd_update(spec, static_cast<double>(kRate), static_cast<double>(momentum), value,
                            to_double(gradient), velocity);
      grid::sgd_update(grid_, spec, put<float>({2}, {kRate, momentum}), value_view,
                       put({kCount}, gradient), velocity_view);
      EXPECT_LE(error_of(value_view, value), 1e-6);
      EXPECT_LE(error_of(velocity_view, velocity), 1e-6);
    }
  }
}

TEST_P(Grid, UpdatesScaleTheGradientAndDecayWhereTheTableSaysSo) {
  constexpr std::int64_t kCount = 1003;
  constexpr float kScale = 0.25F;
  std::vector<std::uint8_t> decays;
  for (const auto decay : random_labels(decay_blocks(kCount), 5, 2)) {
    decays.push_back(static_cast<std::uint8_t>(decay));
  }
  const auto start = random_floats(kCount, 1), gradient = random_floats(kCount, 2);
  const View scale = put<float>({1}, {kScale}), table = put({decay_blocks(kCount)}, decays);

  auto value = to_double(start), velocity = to_double(random_floats(kCount, 3));
  const SgdSpec sgd{.weight_decay = 0.1F};
  const View sgd_value = put({kCount}, start);
  reference::sgd_update(sgd, 0.5, 0.75, value, to_double(gradient), velocity,
                        static_cast<double>(kScale), decays);
  grid::sgd_update(grid_, sgd, put<float>({2}, {0.5F, 0.75F}), sgd_value, put({kCount}, gradient),
                   put({kCount}, random_floats(kCount, 3)), scale, table);
  EXPECT_LE(error_of(sgd_value, value), 1e-6);

  const reference::AdamWHyper hyper{.learning_rate = 0.1, .weight_decay = 0.5};
  auto adam = to_double(start);
  std::vector<double> mean(kCount), square(kCount);
  const View adam_value = put({kCount}, start), mean_view = filled({kCount}, 0.0F),
             square_view = filled({kCount}, 0.0F);
  for (int t = 1; t <= 3; ++t) {
    reference::adamw_update(hyper, t, adam, to_double(gradient), mean, square,
                            static_cast<double>(kScale), decays);
    const std::vector<float> rates = {0.1F, 0.05F, static_cast<float>(0.1 / (1 - std::pow(0.9, t))),
                                      static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, t)))};
    grid::adamw_update(grid_, {}, put({4}, rates), adam_value, put({kCount}, gradient), mean_view,
                       square_view, scale, table);
  }
  EXPECT_LE(error_of(adam_value, adam), 2e-6);
  EXPECT_LE(error_of(mean_view, mean), 1e-6);
  EXPECT_LE(error_of(square_view, square), 1e-6);
}

TEST_P(Grid, AScaleOfZeroSkipsAnUpdate) {
  const std::vector<float> start = random_floats(kCountOfSkipped, 1);
  const View zero = put<float>({1}, {0}), broken = filled<float>({kCountOfSkipped}, kNaN);
  const View value = put({kCountOfSkipped}, start), a = put({kCountOfSkipped}, start),
             b = put({kCountOfSkipped}, start);
  grid::sgd_update(grid_, {}, put<float>({2}, {0.5F, 0.9F}), value, broken, a, zero);
  grid::adamw_update(grid_, {}, put<float>({4}, {0.1F, 0, 0.1F, 1}), value, broken, a, b, zero);
  for (const View& view : {value, a, b}) EXPECT_EQ(read(view), start);
  const View running = put<float>({2}, {1, 2}), counter = put<std::int32_t>({1}, {3});
  const View places = put<std::int32_t>({5, 2}, {0, 2, 1, 2, -2, 2, -1, 2, -1, 2});
  const View update = put<float>({5}, {5, 6, 1, 1, 0});
  grid::running_statistics_commit(grid_, update, places, running, counter, zero);
  EXPECT_EQ(read(running), (std::vector<float>{1, 2}));
  EXPECT_EQ(read<std::int32_t>(counter), std::vector<std::int32_t>{3});
  grid::running_statistics_commit(grid_, update, places, running, counter, put<float>({1}, {1}));
  EXPECT_EQ(read(running), (std::vector<float>{5, 6}));
}

TEST_P(Grid, LossScale) {
  const View state = put<float>({4}, {1024, 9, 0, 2}), seed = put<float>({1}, {0.5F}),
             rates = blank({3});
  grid::loss_scale_begin(grid_, state, put<float>({1}, {3}), put<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                         seed, rates);
  EXPECT_EQ(read(seed), std::vector<float>{512});
  EXPECT_EQ(read(rates), (std::vector<float>{4, 5, 6}));
  const View norm = put<float>({1}, {2048}), factor = blank({1}), told = blank({2});
  grid::loss_scale_end(grid_, {.growth_interval = 10}, norm, state, factor, told);
  EXPECT_EQ(read(norm), std::vector<float>{2});
  EXPECT_EQ(read(factor), std::vector<float>{1.0F / 1024});
  EXPECT_EQ(read(state), (std::vector<float>{2048, 0, 0, 2}));
  EXPECT_EQ(read(told), (std::vector<float>{0, 1024}));
}

TEST_P(Grid, SgdWithoutVelocityDescendsAndShowsAMomentum) {
  const View value = put<float>({5}, {1, 2, 3, 4, 5}), gradient = filled({5}, 10.0F);
  grid::sgd_update(grid_, {}, put<float>({2}, {0.5F, 0}), value, gradient, {});
  EXPECT_EQ(read(value), (std::vector<float>{-4, -3, -2, -1, 0}));
  grid::sgd_update(grid_, {}, put<float>({2}, {0.5F, 0.9F}), value, gradient, {});
  for (const float shown : read(value)) EXPECT_TRUE(std::isnan(shown));
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

TEST_P(Grid, ChangesChannelsToAndFro) {
  for (const Shape& shape :
       {Shape{1, 1, 1, 1}, {3, 5, 1, 7}, {2, 33, 9, 8}, {5, 64, 4, 8}, {4, 0, 2, 2}}) {
    SCOPED_TRACE(shape.to_string());
    const auto x = random_floats(shape.count(), 1);
    const View rows = put(Shape{shape.count()}, x);
    for (const bool to_nhwc : {true, false}) {
      const Layout from = to_nhwc ? Layout::nchw : Layout::nhwc;
      const Layout to = to_nhwc ? Layout::nhwc : Layout::nchw;
      const auto moved = logical(ConstView(nullptr, shape, DType::f32, from), x.data());
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape.count(), beta);
        const View y = put(Shape{shape.count()}, old);
        const View seen(y.data(), shape, DType::f32, to);
        grid::change_channels(grid_, "test", {rows.data(), shape, DType::f32, from}, beta, seen);
        const auto before = logical(ConstView(nullptr, shape, DType::f32, to), old.data());
        EXPECT_LE(relative_l2(read(seen), blended(beta, before, to_double(moved))), 1e-7);
      }
    }
  }
}

TEST_P(Grid, GatherBatchHasTheBitsOfTheLoader) {
  for (const GatherCase& c : gather_cases()) {
    const View images = put(c.shape(), c.pixels), labels = put({kGatherSize}, c.labels);
    for (const data::BatchRequest& request : gather_requests()) {
      const GatheredBatch expected = batch_of_the_loader(c, request);
      const BatchPosition position{request.epoch, request.begin};
      const View y = blank(c.image.with_batch(request.size()));
      const View batch_labels = filled<std::int32_t>({request.size()}, -7);
      grid::gather_batch(grid_, c.spec, images, labels,
                         ConstView(&position, batch_position_shape(), DType::u8), y, batch_labels);
      EXPECT_EQ(read(y), expected.images);
      EXPECT_EQ(read<std::int32_t>(batch_labels), expected.labels);
    }
  }
}

TEST_P(Grid, GatherBatchShowsPositionsBeyondTheDataSet) {
  const GatherCase c = gather_cases().front();
  for (const std::int64_t first : {std::int64_t{-1}, kGatherSize - 1}) {
    const BatchPosition position{0, first};
    const View y = blank(c.image.with_batch(2)), labels = filled<std::int32_t>({2}, -7);
    grid::gather_batch(grid_, c.spec, put(c.shape(), c.pixels), put({kGatherSize}, c.labels),
                       ConstView(&position, batch_position_shape(), DType::u8), y, labels);
    const std::int64_t outside = first < 0 ? 0 : 1, pixels = c.image.count();
    for (std::int64_t i = 0; i < 2 * pixels; ++i) {
      ASSERT_EQ(std::isnan(read(y)[static_cast<std::size_t>(i)]), i / pixels == outside);
    }
    const auto read_labels = read<std::int32_t>(labels);
    EXPECT_EQ(read_labels[static_cast<std::size_t>(outside)], -1);
    EXPECT_GE(read_labels[static_cast<std::size_t>(1 - outside)], 0);
  }
}

TEST_P(Grid, L2Norm) {
  constexpr std::int64_t kPart = grid::SquareSums::kPart;
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3},
                               std::int64_t{1027}, kPart - 1, kPart, kPart + 5, 3 * kPart + 2}) {
    const auto x = random_floats(n, 1);
    const View norm = blank({1});
    grid::l2_norm(grid_, put({n}, x), norm);
    const double expected = reference::l2_norm(to_double(x));
    EXPECT_NEAR(static_cast<double>(read(norm)[0]), expected, 1e-7 * expected) << n;
    const View factor = blank({1});
    grid::l2_norm(grid_, put({n}, x), norm, {2, factor});
    EXPECT_FLOAT_EQ(read(factor)[0], std::min(1.0F, 2 / (read(norm)[0] + 1e-6F)));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Grid,
                         testing::Values(Way{"packs", 1, 0}, Way{"packs_in_another_order", 2, 0},
                                         Way{"one_by_one", 3, 1}, Way{"nhwc", 4, 0, Layout::nhwc},
                                         Way{"nhwc_one_by_one", 5, 1, Layout::nhwc}),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// Dividends at which a wrong quotient shows: beside multiples of d, and at the ends.
std::vector<std::int32_t> dividends_for(std::int64_t d, std::mt19937& random) {
  constexpr std::int64_t kEnd = std::int64_t{1} << 31;
  const std::int64_t last = (kEnd - 1) / d * d;
  std::vector<std::int32_t> dividends = {0, 1, static_cast<std::int32_t>(kEnd - 1)};
  const auto random_multiple = static_cast<std::int64_t>(random() % (kEnd / d)) * d;
  for (const std::int64_t multiple : {d, random_multiple, last}) {
    for (const std::int64_t n : {multiple - 1, multiple, multiple + 1}) {
      if (n >= 0 && n < kEnd) dividends.push_back(static_cast<std::int32_t>(n));
    }
  }
  dividends.push_back(static_cast<std::int32_t>(random() % kEnd));
  return dividends;
}

TEST(Divisor, DividesAsTheProcessorIn32Bits) {
  std::mt19937 random(7);
  std::vector<std::int64_t> divisors(1 << 16);
  std::iota(divisors.begin(), divisors.end(), 1);
  for (int i = 0; i < 20'000; ++i) divisors.push_back(1 + (random() >> (1 + i % 16)));
  for (const std::int64_t d : {(std::int64_t{1} << 31) - 1, std::int64_t{1} << 31}) {
    divisors.push_back(d);
  }
  for (const std::int64_t d : divisors) {
    const grid::Divisor divisor(d);
    for (const std::int32_t n : dividends_for(d, random)) {
      if (divisor.quotient(n) == n / d && divisor.remainder(n) == n % d) continue;
      FAIL() << n << " / " << d << " is not " << divisor.quotient(n);
    }
  }
}

TEST(Divisor, DividesAsTheProcessor) {
  std::vector<std::int64_t> numbers;
  for (int bit = 0; bit < 40; ++bit) {
    for (const std::int64_t near : {-1, 0, 1}) numbers.push_back((std::int64_t{1} << bit) + near);
  }
  for (const std::int64_t odd : {3, 5, 7, 10, 169, 676, 784, 60000, 1'000'003, 2'147'483'629}) {
    for (const std::int64_t times : {1, 2, 3, 1000}) {
      for (const std::int64_t near : {-1, 0, 1}) numbers.push_back(odd * times + near);
    }
  }
  for (const std::int64_t d : numbers) {
    if (d < 1) continue;
    const grid::Divisor divisor(d);
    for (const std::int64_t n : numbers) {
      ASSERT_EQ(divisor.quotient(n), n / d) << n << " / " << d;
      ASSERT_EQ(divisor.remainder(n), n % d) << n << " % " << d;
    }
  }
}

TEST(ChannelSumPlan, CoversAllSamplesOnce) {
  for (const std::int64_t samples : {0, 1, 31, 32, 33, 4096, 100'000}) {
    for (const std::int64_t units : {1, 16, 169, 50'000}) {
      for (const std::int64_t teams : {1, 20, 5000}) {
        const grid::ChannelSumPlan plan(samples, units, teams, 256);
        EXPECT_GE(plan.team_size * plan.samples_per_block, samples);
        EXPECT_LT((plan.team_size - 1) * plan.samples_per_block,
                  std::max<std::int64_t>(samples, 1));
        EXPECT_GE(plan.samples_per_block * units, 256);
        EXPECT_LE(plan.team_size, std::max<std::int64_t>(1, 1024 / teams));
      }
    }
  }
}

/// Each thread adds up what all threads of its block wrote.
struct SumOfBlock {
  static constexpr int kThreads = 32, kPhases = 2;
  struct Shared {
    int seen[kThreads];
  };
  std::vector<int>* sums;
  void phase(int k, const grid::Place& place, Shared& shared) const {
    if (k == 0) {
      shared.seen[place.thread] = 1;
    } else {
      for (const int one : shared.seen) (*sums)[static_cast<std::size_t>(place.block)] += one;
    }
  }
};

/// The last block of a team counts the blocks that wrote before.
struct CountOfTeam {
  static constexpr int kThreads = 1, kPhases = 1, kTeamPhases = 1;
  struct Shared {};
  grid::Divisor team_size;
  std::vector<int>* members;
  std::vector<bool>* written;
  void phase(int, const grid::Place& place, Shared&) const {
    (*written)[static_cast<std::size_t>(place.block)] = true;
  }
  void team_phase(int, const grid::Place& place, Shared&) const {
    const std::int64_t team = team_size.quotient(place.block), size = team_size.divisor();
    for (std::int64_t block = team * size; block < (team + 1) * size; ++block) {
      (*members)[static_cast<std::size_t>(team)] += (*written)[static_cast<std::size_t>(block)];
    }
  }
};

TEST(HostGrid, RunsEveryThreadOnceAndPhasesOneAfterAnother) {
  std::vector<int> sums(3);
  HostGrid grid(1);
  grid.run_blocks("sums", 3, SumOfBlock{&sums});
  EXPECT_EQ(sums, std::vector<int>(3, 32 * 32));
  for (const std::int64_t size : {1, 3}) {
    std::vector<int> members(5);
    std::vector<bool> written(static_cast<std::size_t>(5 * size));
    grid.run_teams("teams", 5, CountOfTeam{grid::Divisor(size), &members, &written});
    EXPECT_EQ(members, std::vector<int>(5, static_cast<int>(size)));
  }
  std::multiset<std::int64_t> visited;
  grid.for_each("visits", 100, [&](std::int64_t i) { visited.insert(i); });
  EXPECT_EQ(visited.size(), 100U);
  EXPECT_EQ(std::set<std::int64_t>(visited.begin(), visited.end()).size(), 100U);
}

}  // namespace
}  // namespace ringlet::test
