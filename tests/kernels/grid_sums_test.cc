// kernels/grid/: batch norm, loss, counts and norms, on the host (grid_fixture.h), compared
// with the references.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/grid/batch_norm.h"
#include "kernels/grid/classify.h"
#include "kernels/grid/l2_norm.h"
#include "kernels/grid/pointwise_loss.h"
#include "kernels/grid/running_statistics.h"
#include "kernels/grid/softmax_cross_entropy.h"
#include "tests/kernels/grid_fixture.h"
#include "tests/reference/batch_norm.h"
#include "tests/reference/classify.h"
#include "tests/reference/elements.h"
#include "tests/reference/pointwise_loss.h"
#include "tests/reference/softmax_cross_entropy.h"

namespace ringlet::test {
namespace {

std::vector<Shape> normalized_shapes() {
  return {{5, 1},        {33, 10},      {33, 12},      {33, 16},      {70, 32},
          {20, 7, 1, 1}, {17, 3, 5, 7}, {96, 2, 4, 4}, {1, 2, 40, 40}};
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

// So many rows that a thread asks for several before it adds the first, and has some left.
TEST_P(Grid, BatchNormSumsOfManyRows) {
  constexpr std::int64_t kRows = 65539;
  for (const std::int64_t channels : {16, 32}) {
    const Shape shape{kRows, channels};
    SCOPED_TRACE(shape.to_string());
    const auto x = random_floats(shape.count(), 1), dy = random_floats(shape.count(), 2, -0.5F, 1);
    const auto of_x = reference::moments_of(shape, to_double(x));
    const View moments = blank({2, channels}), sums = blank({2, channels});
    const BatchNorm norm{.activation = Activation::relu,
                         .count = of_x.count,
                         .x = put(shape, x),
                         .statistics = moments};
    grid::batch_norm_moments(grid_, norm.x, moments);
    auto both = of_x.mean;
    both.insert(both.end(), of_x.squares.begin(), of_x.squares.end());
    EXPECT_LE(error_of(moments, both), 2e-6);

    const std::vector<double> ones(static_cast<std::size_t>(channels), 1), zeros(ones.size(), 0);
    const auto y64 = reference::relu_forward(
        reference::batch_norm_forward(shape, of_x, 1e-5, ones, zeros, to_double(x)));
    const auto dz64 = reference::relu_backward(y64, to_double(dy));
    const auto expected =
        reference::batch_norm_backward(shape, of_x, 1e-5, ones, to_double(x), dz64);
    const View dz = blank(shape);
    grid::batch_norm_backward_sums(grid_, norm, {}, put(shape, dy), dz, sums);
    both = expected.bias;
    both.insert(both.end(), expected.weight.begin(), expected.weight.end());
    EXPECT_LE(error_of(sums, both), 2e-6);
    EXPECT_LE(error_of(dz, dz64), 1e-7);
  }
}

/// Channels of a thread, and of its team.
template <class T, grid::RowShares kShares = grid::RowShares{}>
std::pair<int, int> dealt_out(std::int64_t channels, std::size_t offset = 0) {
  alignas(16) const T data[16] = {};
  std::pair<int, int> found;
  const auto launch = [&]<class R>(R) { found = {R::kChannels, R::kChannels * R::kColumns}; };
  grid::with_channels_of<kShares>(channels, launch, data + offset);
  return found;
}

// A thread without channels would be idle.
TEST(RowShares, AreAsWideAsTheRowFillsThem) {
  using Pair = std::pair<int, int>;
  constexpr grid::RowShares kWide{8, 128};
  for (const int channels : {32, 64, 96, 256}) {
    EXPECT_EQ((dealt_out<float, kWide>(channels)), Pair(2, 32)) << channels;
  }
  for (const int channels : {16, 48}) {
    EXPECT_EQ((dealt_out<float, kWide>(channels)), Pair(2, 16)) << channels;
  }
  for (const int channels : {2, 8, 10, 24}) {
    EXPECT_EQ((dealt_out<float, kWide>(channels)), Pair(2, 8)) << channels;
  }
  EXPECT_EQ((dealt_out<float, kWide>(33)), Pair(1, 8));
  EXPECT_EQ((dealt_out<float, kWide>(32, 1)), Pair(1, 8));  // no address for packs
  EXPECT_EQ((dealt_out<float>(32)), Pair(1, 8));
  EXPECT_EQ((dealt_out<BFloat16>(32)), Pair(2, 16));
  EXPECT_EQ((dealt_out<BFloat16>(33)), Pair(1, 16));
}

// Of so many rows a thread has two or four, which it asks for at once, and the last one fewer; of a
// few rows it has one. No row may see the difference.
TEST_P(Grid, BatchNormOfManyRowsHasTheBitsOfFew) {
  constexpr std::int64_t kRows = 65539, kFew = 5;
  for (const std::int64_t channels : {16, 32}) {
    SCOPED_TRACE(channels);
    const auto x = random_floats(kRows * channels, 1), dy = random_floats(kRows * channels, 2);
    BatchNorm norm{.activation = Activation::relu,
                   .count = kRows,
                   .statistics = put({2, channels}, random_floats(2 * channels, 3, 0, 1))};
    const auto run = [&](std::int64_t first, std::int64_t rows) {
      const auto part = [&](const std::vector<float>& of) {
        const auto begin = of.begin() + first * channels;
        return put({rows, channels}, std::vector<float>(begin, begin + rows * channels));
      };
      norm.x = part(x);
      const View y = blank({rows, channels}), dx = part(x);
      grid::batch_norm_forward(grid_, norm, part(dy), y);
      grid::batch_norm_backward_data(grid_, norm, part(dy), {}, 0.5F, dx);
      return std::pair{read(y), read(dx)};
    };
    const auto many = run(0, kRows);
    for (const std::int64_t first : {std::int64_t{0}, kRows / 2, kRows - kFew}) {
      const auto few = run(first, kFew);
      EXPECT_TRUE(
          std::equal(few.first.begin(), few.first.end(), many.first.begin() + first * channels));
      EXPECT_TRUE(
          std::equal(few.second.begin(), few.second.end(), many.second.begin() + first * channels));
    }
    for (const auto& all : {many.first, many.second}) {
      EXPECT_TRUE(
          std::none_of(all.begin(), all.end(), [](float value) { return std::isnan(value); }));
    }
  }
}

/// Whatever the width of a thread's channels: narrow rows have the bits of f32's, rounded.
template <class T>
void expect_narrow_rows(HostGrid& grid, std::int64_t channels) {
  constexpr std::int64_t kRows = 5;
  const auto narrow = [&](std::uint32_t seed) {
    std::vector<T> values;
    for (const float value : random_floats(kRows * channels, seed)) {
      values.push_back(reduction::round_to<T>(value));
    }
    return values;
  };
  const auto widened = [](const std::vector<T>& values) {
    std::vector<float> wide;
    for (const T& value : values) wide.push_back(reduction::load(value));
    return wide;
  };
  const auto statistics = random_floats(2 * channels, 3, 0.5F, 1),
             sums = random_floats(2 * channels, 4);
  // From an address that packs may be read from.
  const auto gradient = [&]<class U>(const std::vector<U>& x, const std::vector<U>& dy) {
    std::vector<U> dx(x.size());
    const auto view = [&](const std::vector<U>& of) {
      return ConstView(of.data(), {kRows, channels}, DTypeOf<U>::value);
    };
    const BatchNorm norm{.activation = Activation::relu,
                         .count = kRows,
                         .x = view(x),
                         .statistics = ConstView(statistics.data(), {2, channels})};
    grid::batch_norm_backward_data(grid, norm, view(dy), ConstView(sums.data(), {2, channels}), 0,
                                   View(dx.data(), {kRows, channels}, DTypeOf<U>::value));
    return dx;
  };
  const std::vector<T> x = narrow(1), dy = narrow(2);
  std::vector<float> rounded;
  for (const float value : gradient(widened(x), widened(dy))) {
    rounded.push_back(reduction::load(reduction::round_to<T>(value)));
  }
  EXPECT_EQ(widened(gradient(x, dy)), rounded);
}

TEST_P(Grid, BatchNormOfNarrowRowsHasTheBitsOfF32Rounded) {
  for (const std::int64_t channels : {3, 4, 8, 12, 24}) {
    SCOPED_TRACE(channels);
    expect_narrow_rows<BFloat16>(grid_, channels);
    expect_narrow_rows<Half>(grid_, channels);
  }
}

TEST_P(Grid, RunningStatistics) {
  const View update = filled<float>({7}, 0), running = filled<float>({4}, 1);
  const View counter = filled<std::int32_t>({1}, 3);
  const View targets = put<std::int32_t>({7, 2}, {0, 4, 1, 4, 2, 4, 3, 4, -2, 4, -1, 4, -1, 4});
  grid::running_statistics_track(grid_, {.count = 5}, put<float>({2, 2}, {2, 3, 8, 16}), update);
  grid::running_statistics_commit(grid_, update, targets, running, counter);
  const std::vector<double> expected{0.9 + 0.2, 0.9 + 0.3, 0.9 + 0.2, 0.9 + 0.4};
  EXPECT_LE(error_of(running, expected), 1e-6);
  EXPECT_EQ(read<std::int32_t>(counter), std::vector<std::int32_t>{4});
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

TEST_P(Grid, WeightedSoftmaxCrossEntropy) {
  constexpr float kLossGradient = 0.125F;
  for (const std::int64_t classes : {1, 10, 100}) {
    for (const float smoothing : {0.0F, 0.1F}) {
      const Shape shape{17, classes};
      SCOPED_TRACE(shape.to_string());
      const auto logits = random_floats(shape.count(), 1, -5, 5);
      const auto labels = random_labels(17, 2, static_cast<int>(classes));
      const auto w = random_floats(classes, 3, 0, 4);
      float sum = 0;
      for (const float weight : w) sum += weight;
      const ClassWeights weights{put({classes}, w), sum / static_cast<float>(classes)};
      const View p = blank(shape), loss = blank({1}), label_view = put({17}, labels);
      grid::softmax_cross_entropy_forward(grid_, put(shape, logits), label_view, p, loss, smoothing,
                                          {}, weights);
      const auto a = static_cast<double>(smoothing);
      const double expected = reference::softmax_cross_entropy_forward(classes, to_double(logits),
                                                                       labels, a, to_double(w));
      EXPECT_NEAR(read(loss)[0], expected, 1e-6 * std::max(1.0, expected));
      const auto gradient = reference::softmax_cross_entropy_backward(
          classes, to_double(logits), labels, static_cast<double>(kLossGradient), a, to_double(w));
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape.count(), beta);
        const View dz = put(shape, old);
        grid::softmax_cross_entropy_backward(grid_, p, label_view, filled({1}, kLossGradient), beta,
                                             dz, smoothing, weights);
        EXPECT_LE(error_of(dz, blended(beta, old, gradient)), 1e-6);
      }
    }
  }
}

TEST_P(Grid, PointwiseLosses) {
  constexpr float kLossGradient = 0.125F;
  for (const auto kind : reference::kPointwiseLosses) {
    for (const std::int64_t n : {0, 1, 17, 900}) {
      const Shape shape{n, 7};
      SCOPED_TRACE(shape.to_string());
      const auto p = random_floats(shape.count(), 1, -5, 5);
      const auto t = random_floats(shape.count(), 2, 0, 1);
      const View predictions = put(shape, p), targets = put(shape, t), loss = blank({1});
      const View sum = filled({1}, 0.5F);
      grid::pointwise_loss_forward(grid_, kind, predictions, targets, loss, sum);
      EXPECT_EQ(read(sum)[0], 0.5F + read(loss)[0]);
      const double expected =
          reference::pointwise_loss_forward(kind, 7, to_double(p), to_double(t));
      EXPECT_NEAR(read(loss)[0], expected, 1e-6 * std::max(1.0, expected));
      const auto gradient = reference::pointwise_loss_backward(kind, 7, to_double(p), to_double(t),
                                                               static_cast<double>(kLossGradient));
      for (const float beta : kBetas) {
        const auto old = old_gradient(shape.count(), beta);
        const View dp = put(shape, old);
        grid::pointwise_loss_backward(grid_, kind, predictions, targets, filled({1}, kLossGradient),
                                      beta, dp);
        EXPECT_LE(error_of(dp, blended(beta, old, gradient)), 1e-6);
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

}  // namespace
}  // namespace ringlet::test
