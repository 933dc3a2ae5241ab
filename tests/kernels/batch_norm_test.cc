#include "kernels/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/narrow_floats.h"
#include "kernels/running_statistics.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"
#include "tests/reference/batch_norm.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

constexpr double kEpsilon = 1e-5;

std::vector<double> doubles_behind(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class BatchNormTest : public OperationTest {
 protected:
  template <class F>
  void for_each_shape(F f) {
    std::vector<Shape> shapes = bias_shapes();
    shapes.push_back({1, 2, 20, 21});  // more than a part
    for (const Shape& sample : shapes) {
      for (const std::int64_t n : {1, 2, 15, 16, 17, 33}) {
        const Shape shape = sample.with_batch(n);
        if (shape.count() / shape[1] < 2) continue;  // one value has no variance
        SCOPED_TRACE(shape.to_string());
        f(shape);
      }
    }
  }
};

/// A case in double, and its tensors in float: y = relu?(w h + b + residual?).
struct Case {
  Shape shape;
  bool relu, residual;
  std::vector<float> x, added, weight, bias, dy;
  reference::Moments<double> moments;
  std::vector<double> y;

  Case(const Shape& the_shape, bool with_relu, bool with_residual)
      : shape(the_shape),
        relu(with_relu),
        residual(with_residual),
        x(random_floats(shape.count(), 1, -1, 3)),
        added(random_floats(shape.count(), 2)),
        weight(random_floats(shape[1], 3, 0.5F, 2)),
        bias(random_floats(shape[1], 4)),
        dy(random_floats(shape.count(), 5, -0.5F, 1)),
        moments(reference::moments_of(shape, to_double(x))),
        y(reference::batch_norm_forward(shape, moments, kEpsilon, to_double(weight),
                                        to_double(bias), to_double(x))) {
    for (std::size_t i = 0; i < y.size() && residual; ++i) y[i] += static_cast<double>(added[i]);
    if (relu) y = reference::relu_forward(y);
  }
  std::vector<double> dz() const {
    return relu ? reference::relu_backward(y, to_double(dy)) : to_double(dy);
  }
};

TEST_P(BatchNormTest, Moments) {
  for_each_shape([&](const Shape& shape) {
    const auto x = random_floats(shape.count(), 1, -1, 3);
    const auto expected = reference::moments_of(shape, to_double(x));
    const Tensor moments = run([&](Device& device) {
      Tensor result(device, {2, shape[1]});
      batch_norm_moments(device.compute(), input(device, shape, x), result);
      return result;
    });
    EXPECT_LE(relative_l2(read(moments), doubles_behind(expected.mean, expected.squares)), 3e-7);
  });
}

// A sum of squares less the square of a sum would have no digit left.
TEST_P(BatchNormTest, MomentsFarFromZero) {
  const Shape shape{33, 3, 40, 31};
  auto x = random_floats(shape.count(), 1, -1.7320508F, 1.7320508F);  // a deviation of 1
  for (float& value : x) value += 1e4F;
  const auto expected = reference::moments_of(shape, to_double(x));
  const Tensor moments = run([&](Device& device) {
    Tensor result(device, {2, shape[1]});
    batch_norm_moments(device.compute(), input(device, shape, x), result);
    return result;
  });
  const auto found = read(moments);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(static_cast<double>(found[c]), expected.mean[c], 6e-4);  // a digit of f32
    EXPECT_NEAR(static_cast<double>(found[3 + c]) / expected.squares[c], 1, 1e-6);
  }
}

TEST_P(BatchNormTest, NothingHasNoMoments) {
  const Tensor moments = run([&](Device& device) {
    Tensor result = upload(device, {2, 3}, std::vector<float>(6, kNaN));
    batch_norm_moments(device.compute(), Tensor(device, {0, 3, 2, 2}, DType::f32, layout()),
                       result);
    return result;
  });
  EXPECT_EQ(read(moments), std::vector<float>(6));
}

TEST_P(BatchNormTest, Forward) {
  for (const bool relu : {false, true}) {
    for (const bool residual : {false, true}) {
      for_each_shape([&](const Shape& shape) {
        const Case c(shape, relu, residual);
        for (const bool at_once : {false, true}) {
          const Tensor y = run([&](Device& device) {
            const Tensor x = input(device, shape, c.x), added = input(device, shape, c.added);
            const Tensor w = upload(device, {shape[1]}, c.weight);
            const Tensor b = upload(device, {shape[1]}, c.bias);
            Tensor result = output(device, shape), moments(device, {2, shape[1]});
            const BatchNorm norm{.activation = relu ? Activation::relu : Activation::none,
                                 .count = c.moments.count,
                                 .x = x,
                                 .statistics = moments,
                                 .weight = w,
                                 .bias = b};
            const ConstView behind = residual ? ConstView(added.view()) : ConstView();
            if (at_once) {
              batch_norm_train_forward(device.compute(), norm, moments, behind, result);
            } else {
              batch_norm_moments(device.compute(), x, moments);
              batch_norm_forward(device.compute(), norm, behind, result);
            }
            return result;
          });
          EXPECT_LE(relative_l2(read(y), c.y), 1e-6);
          expect_padding_finite(y);
        }
      });
    }
  }
}

TEST_P(BatchNormTest, Backward) {
  for (const bool relu : {false, true}) {
    for (const bool residual : {false, true}) {
      for_each_shape([&](const Shape& shape) {
        const Case c(shape, relu, residual);
        if (c.moments.count < 3) return;  // of two values, all of dx is rounding
        const auto dz = c.dz();
        const auto expected = reference::batch_norm_backward(
            shape, c.moments, kEpsilon, to_double(c.weight), to_double(c.x), dz);
        for (const float beta : kBetas) {
          for (const bool at_once : {false, true}) {
            const auto old = old_gradient(shape.count(), beta);
            const Tensor dx = run([&](Device& device) {
              Stream& stream = device.compute();
              const Tensor x = input(device, shape, c.x), added = input(device, shape, c.added);
              const Tensor w = upload(device, {shape[1]}, c.weight);
              const Tensor b = upload(device, {shape[1]}, c.bias);
              Tensor y = output(device, shape), moments(device, {2, shape[1]});
              Tensor sums(device, {2, shape[1]}), result = old_tensor(device, shape, old, beta);
              Tensor dy = gradient(device, shape, c.dy);
              BatchNorm norm{.activation = relu ? Activation::relu : Activation::none,
                             .count = c.moments.count,
                             .x = x,
                             .statistics = moments,
                             .weight = w,
                             .bias = b};
              batch_norm_train_forward(stream, norm, moments,
                                       residual ? ConstView(added.view()) : ConstView(), y);
              const View rest = residual ? dy.view() : View();
              const ConstView of_y = residual && relu ? ConstView(y.view()) : ConstView();
              if (at_once) {
                batch_norm_backward(stream, norm, of_y, dy, rest, sums, beta, result);
              } else {
                batch_norm_backward_sums(stream, norm, of_y, dy, rest, sums);
                if (residual) norm.activation = Activation::none;
                batch_norm_backward_data(stream, norm, dy, sums, beta, result);
              }
              EXPECT_LE(relative_l2(test::read(stream, sums),
                                    doubles_behind(expected.bias, expected.weight)),
                        2e-6);
              EXPECT_LE(relative_l2(test::read(stream, dy), residual ? dz : to_double(c.dy)), 1e-7);
              return result;
            });
            EXPECT_LE(relative_l2(read(dx), blended(beta, old, expected.dx)), 4e-6);
            if (beta == 0) expect_padding_zero(dx);
          }
        }
      });
    }
  }
}

// So many rows that a GPU's threads ask for several at once, and have some left.
TEST_P(BatchNormTest, OfManyRows) {
  if (!on_cuda() || layout() != Layout::nhwc) GTEST_SKIP() << "for a GPU's threads over rows";
  const Shape shape{64, 32, 32, 33};
  const auto numbers = [&](std::uint32_t seed) {  // that bf16 holds
    auto values = random_floats(shape.count(), seed);
    for (float& value : values) value = widen(to_bfloat16(value));
    return values;
  };
  const auto x = numbers(1), dy = numbers(2);
  auto added = numbers(3);
  const std::vector<double> ones(32, 1), zeros(32, 0);
  const auto moments64 = reference::moments_of(shape, to_double(x));
  auto y64 = reference::batch_norm_forward(shape, moments64, kEpsilon, ones, zeros, to_double(x));
  for (std::size_t i = 0; i < y64.size(); ++i) {
    if (std::abs(y64[i] + static_cast<double>(added[i])) < 1e-3) added[i] = 1;  // no rounding away
    y64[i] += static_cast<double>(added[i]);
  }
  y64 = reference::relu_forward(y64);
  const auto expected = reference::batch_norm_backward(
      shape, moments64, kEpsilon, ones, to_double(x), reference::relu_backward(y64, to_double(dy)));
  const auto dx64 = blended(1, x, expected.dx);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const double rounding = dtype == DType::f32 ? 4e-6 : 4e-3;
    run([&](Device& device) {
      Stream& stream = device.compute();
      const auto put = [&](const std::vector<float>& values) {
        Tensor wide = input(device, shape, values);
        if (dtype == DType::f32) return wide;
        Tensor narrow(device, shape, dtype, layout());
        cast(stream, wide, narrow);
        return narrow;
      };
      const auto error_of = [&](const Tensor& found, const std::vector<double>& wanted) {
        if (dtype == DType::f32) return relative_l2(test::read(stream, found), wanted);
        const Tensor wide(device, shape, DType::f32, layout());
        cast(stream, found, wide);
        return relative_l2(test::read(stream, wide), wanted);
      };
      const Tensor in = put(x), residual = put(added), gradient = put(dy);
      Tensor y = put(dy), dx = put(x), moments(device, {2, 32}), sums(device, {2, 32});
      BatchNorm norm{
          .activation = Activation::relu, .count = moments64.count, .x = in, .statistics = moments};
      batch_norm_moments(stream, in, moments);
      EXPECT_LE(relative_l2(test::read(stream, moments),
                            doubles_behind(moments64.mean, moments64.squares)),
                3e-7);
      batch_norm_forward(stream, norm, residual, y);
      EXPECT_LE(error_of(y, y64), rounding);
      batch_norm_backward_sums(stream, norm, y, gradient, gradient, sums);
      EXPECT_LE(
          relative_l2(test::read(stream, sums), doubles_behind(expected.bias, expected.weight)),
          2e-6);
      norm.activation = Activation::none;
      batch_norm_backward_data(stream, norm, gradient, sums, 1, dx);
      EXPECT_LE(error_of(dx, dx64), rounding);
      return dx;
    });
  }
}

TEST_P(BatchNormTest, BackwardThroughConstantStatistics) {
  const Shape shape{17, 3, 5, 7};
  const Case c(shape, true, false);
  const auto expected = reference::batch_norm_backward(
      shape, c.moments, kEpsilon, to_double(c.weight), to_double(c.x), c.dz(), true);
  const Tensor dx = run([&](Device& device) {
    const Tensor x = input(device, shape, c.x), w = upload(device, {3}, c.weight);
    const Tensor b = upload(device, {3}, c.bias);
    Tensor moments(device, {2, 3}), result = output(device, shape);
    batch_norm_moments(device.compute(), x, moments);
    const BatchNorm norm{.activation = Activation::relu,
                         .count = c.moments.count,
                         .x = x,
                         .statistics = moments,
                         .weight = w,
                         .bias = b};
    batch_norm_backward_data(device.compute(), norm, gradient(device, shape, c.dy), {}, 0, result);
    return result;
  });
  EXPECT_LE(relative_l2(read(dx), expected.dx), 2e-6);
  expect_padding_zero(dx);
}

TEST_P(BatchNormTest, WithoutWeightAndBias) {
  const Shape shape{5, 3, 4, 4};
  const auto x = random_floats(shape.count(), 1);
  const auto moments = reference::moments_of(shape, to_double(x));
  const Tensor y = run([&](Device& device) {
    const Tensor from = input(device, shape, x);
    Tensor result = output(device, shape), found(device, {2, 3});
    const BatchNorm norm{.count = moments.count, .x = from, .statistics = found};
    batch_norm_train_forward(device.compute(), norm, found, {}, result);
    return result;
  });
  EXPECT_LE(relative_l2(read(y), reference::normalized(shape, moments, kEpsilon, to_double(x))),
            1e-6);
}

INSTANTIATE_TEST_SUITE_P(Setups, BatchNormTest, all_setups(setups_of(Layout::nchw)), name_of);

class NormNumbers : public OperationTest {
 protected:
  static constexpr double kStart[] = {10, 20, 1, 1};
  static inline const std::vector<float> kFirst{1, 2, 6, 4}, kSecond{3, 8, 2, 10};
  /// Of means; of squares of three values, which become variances: 1 / (3 - 1).
  static double scale_of(std::size_t i) { return i < 2 ? 1 : 0.5; }

  /// What is kept after a shard's two micro-batches, the first of which has this share of the step.
  std::vector<float> running_after(double share) {
    return read(run([&](Device& device) {
      Stream& stream = device.compute();
      Tensor updates = upload(device, {14}, std::vector<float>(14)), running(device, {4});
      const View layer = updates.view().slice(0, 7);
      const Tensor a = upload(device, {2, 2}, kFirst), b = upload(device, {2, 2}, kSecond);
      running_statistics_track(stream, {.count = 3, .share = share, .so_far = share, .batches = 1},
                               a, layer);
      running_statistics_track(stream, {.count = 3, .share = 1 - share, .so_far = 1, .batches = 2},
                               b, layer);
      std::vector<std::int32_t> table;
      for (const std::int32_t target : {0, 1, 2, 3, -2, -1, -1}) {
        table.insert(table.end(), {target, 4});
      }
      for (int i = 0; i < 7; ++i) table.insert(table.end(), {i < 4 ? i : -1, 11});  // did not run
      copy_from_host(stream, std::vector<float>(std::begin(kStart), std::end(kStart)).data(),
                     running);
      const Tensor counter = upload(device, {1}, std::vector<std::int32_t>{5});
      running_statistics_commit(stream, updates, upload(device, {14, 2}, table), running, counter);
      EXPECT_EQ(test::read<std::int32_t>(stream, counter), std::vector<std::int32_t>{7});
      return running;
    }));
  }
};

// Parts of a tensor, one of them empty, give the moments of the whole.
TEST_P(NormNumbers, MomentsMerge) {
  const Shape shape{30, 4, 3, 3};
  const auto x = random_floats(shape.count(), 1, 5, 9);
  const auto expected = reference::moments_of(shape, to_double(x));
  const std::int64_t cuts[] = {0, 7, 7, 8, 30};
  const Tensor merged = run([&](Device& device) {
    Tensor parts(device, {4, 9}), result(device, {2, 4});
    const View flat = parts.view().reshaped({36});
    for (std::int64_t part = 0; part < 4; ++part) {
      const std::int64_t first = cuts[part], n = cuts[part + 1] - first;
      const std::vector<float> values(x.begin() + first * 36, x.begin() + (first + n) * 36);
      batch_norm_moments(device.compute(), upload(device, {n, 4, 3, 3}, values),
                         flat.slice(9 * part, 9 * part + 8).reshaped({2, 4}));
      const auto samples = static_cast<float>(n);
      copy_from_host(device.compute(), &samples, flat.slice(9 * part + 8, 9 * part + 9));
    }
    batch_norm_merge(device.compute(), parts, 9, result);
    return result;
  });
  EXPECT_LE(relative_l2(read(merged), doubles_behind(expected.mean, expected.squares)), 3e-7);
}

// PyTorch's rule, one micro-batch after the other: they are alike in size.
TEST_P(NormNumbers, RunningStatistics) {
  const std::vector<float> found = running_after(0.5);
  for (std::size_t i = 0; i < 4; ++i) {
    double expected = 0.9 * kStart[i] + 0.1 * scale_of(i) * static_cast<double>(kFirst[i]);
    expected = 0.9 * expected + 0.1 * scale_of(i) * static_cast<double>(kSecond[i]);
    EXPECT_NEAR(static_cast<double>(found[i]), expected, 1e-5);
  }
}

// What the step takes from the start is PyTorch's; what it puts there goes by samples, with the
// first micro-batch's share of 2/3 once more times 0.9: 0.6 to 1/3.
TEST_P(NormNumbers, RunningStatisticsGoBySamplesWhereMicroBatchesDiffer) {
  const std::vector<float> found = running_after(2.0 / 3);
  for (std::size_t i = 0; i < 4; ++i) {
    const double mean =
        (9 * static_cast<double>(kFirst[i]) + 5 * static_cast<double>(kSecond[i])) / 14;
    const double expected = 0.81 * kStart[i] + 0.19 * scale_of(i) * mean;
    EXPECT_NEAR(static_cast<double>(found[i]), expected, 1e-5);
  }
}

// 4 + 3 + 3 samples: each micro-batch counts by its samples. PyTorch would count them alike.
TEST_P(NormNumbers, RunningStatisticsOfUnequalMicroBatches) {
  constexpr double kMeans[] = {1, 2, 6}, kSamples[] = {4, 3, 3};
  const Tensor result = run([&](Device& device) {
    Stream& stream = device.compute();
    Tensor update = upload(device, {5}, std::vector<float>(5));
    double so_far = 0;
    for (int i = 0; i < 3; ++i) {
      so_far += kSamples[i] / 10;
      running_statistics_track(
          stream, {.count = 2, .share = kSamples[i] / 10, .so_far = so_far, .batches = 1.0 + i},
          upload(device, {2, 1}, std::vector<float>{static_cast<float>(kMeans[i]), 1}), update);
    }
    const Tensor targets =
        upload(device, {5, 2}, std::vector<std::int32_t>{0, 2, 1, 2, -2, 2, -1, 2, -1, 2});
    Tensor running = upload(device, {2}, std::vector<float>{10, 1});
    const Tensor counter = upload(device, {1}, std::vector<std::int32_t>{5});
    running_statistics_commit(stream, update, targets, running, counter);
    EXPECT_EQ(test::read<std::int32_t>(stream, counter), std::vector<std::int32_t>{8});
    return running;
  });
  double sum = 0, weights = 0, as_pytorch = 10;
  for (int i = 0; i < 3; ++i) {
    sum = 0.9 * sum + kSamples[i] * kMeans[i];
    weights = 0.9 * weights + kSamples[i];
    as_pytorch = 0.9 * as_pytorch + 0.1 * kMeans[i];
  }
  const auto found = static_cast<double>(read(result)[0]);
  EXPECT_NEAR(found, 0.729 * 10 + 0.271 * sum / weights, 1e-5);
  EXPECT_GT(std::abs(found - as_pytorch), 0.01);
}

// Twelve twelfths are 0.99999988 in f32, yet one micro-batch was seen.
TEST_P(NormNumbers, CountsWholeMicroBatchesThoughSharesAreRounded) {
  run([](Device& device) {
    Stream& stream = device.compute();
    float seen = 0;
    for (int shard = 0; shard < 12; ++shard) seen += 1.0F / 12;
    EXPECT_LT(seen, 1.0F);
    const Tensor update = upload(device, {3}, std::vector<float>{seen, 0.1F, 0.9F});
    const Tensor targets = upload(device, {3, 2}, std::vector<std::int32_t>{-2, 0, -1, 0, -1, 0});
    const Tensor counter = upload(device, {1}, std::vector<std::int32_t>{5});
    Tensor running = upload(device, {1}, std::vector<float>{0});
    running_statistics_commit(stream, update, targets, running, counter);
    EXPECT_EQ(test::read<std::int32_t>(stream, counter), std::vector<std::int32_t>{6});
    return running;
  });
}

INSTANTIATE_TEST_SUITE_P(Setups, NormNumbers, nchw_setups(setups_of(Layout::nchw)), name_of);

}  // namespace
}  // namespace ringlet::test
