// What is exchanged and updated by rows (kernels/rows.h, row_updates.h, softmax_shards.h), on each
// device.
#include "kernels/rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/l2_norm.h"
#include "kernels/row_updates.h"
#include "kernels/softmax_cross_entropy.h"
#include "kernels/softmax_shards.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/harness.h"

namespace ringlet::test {
namespace {

class Rows : public OperationTest {};
INSTANTIATE_TEST_SUITE_P(Setups, Rows, all_setups(), name_of);

TEST_P(Rows, AreTheSamplesOfAnyLayout) {
  for (const std::int64_t n : kBatches) {
    const Shape shape{n, 7};
    const auto x = random_floats(shape.count(), 1);
    const Tensor rows = run([&](Device& device) {
      Tensor result(device, shape);
      rows_forward(device.compute(), input(device, shape, x), result);
      return result;
    });
    EXPECT_EQ(read(rows), x);
    for (const float beta : kBetas) {
      const auto old = old_gradient(shape.count(), beta);
      const Tensor dx = run([&](Device& device) {
        Tensor result = old_tensor(device, shape, old, beta);
        rows_backward(device.compute(), upload(device, shape, x), beta, result);
        return result;
      });
      expect_close(dx, blended(beta, old, to_double(x)), 1e-6);
      expect_padding_zero(dx);
    }
  }
}

class RowUpdates : public OperationTest {};
INSTANTIATE_TEST_SUITE_P(Setups, RowUpdates, nchw_setups(), name_of);

TEST_P(RowUpdates, HaveTheBitsOfTheWholeStepAndLeaveOtherRows) {
  constexpr std::int64_t kRows = 40, kColumns = 9, kCount = kRows * kColumns;
  std::vector<std::int32_t> named;
  std::vector<float> few;
  const auto start = random_floats(kCount, 1), gradient = random_floats(kCount, 2),
             state = random_floats(kCount, 3, 0, 1), more = random_floats(kCount, 4, 0, 1);
  for (std::int32_t row = 1; row < kRows; row += 3) {
    named.push_back(row);
    few.insert(few.end(), gradient.begin() + row * kColumns,
               gradient.begin() + (row + 1) * kColumns);
  }
  const auto expect_rows = [&](const Tensor& found, const std::vector<float>& before,
                               const Tensor& whole) {
    const auto values = read(found), all = read(whole);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool is_named = i / kColumns % 3 == 1;
      EXPECT_EQ(values[i], is_named ? all[i] : before[i]) << i;
    }
  };
  Device& device = *devices_[0];
  Stream& stream = device.compute();
  const Tensor rows = upload(device, {std::ssize(named)}, named);
  const Tensor small = upload(device, {std::ssize(named), kColumns}, few);
  const Tensor large = upload(device, {kCount}, gradient);
  const auto flat = [&](const std::vector<float>& values) {
    return upload(device, {kCount}, values);
  };
  const auto matrix = [&](const std::vector<float>& values) {
    return upload(device, {kRows, kColumns}, values);
  };
  for (const bool nesterov : {false, true}) {
    const SgdSpec spec{.weight_decay = 0.1F, .nesterov = nesterov};
    const Tensor rates = upload<float>(device, {2}, {0.1F, 0.9F});
    const Tensor whole = flat(start), speeds = flat(state);
    sgd_update(stream, spec, rates, whole, large, speeds);
    const Tensor value = matrix(start), velocity = matrix(state);
    sgd_update_rows(stream, spec, rates, rows, value, small, velocity);
    expect_rows(value, start, whole);
    expect_rows(velocity, state, speeds);
  }
  const Tensor rates = upload<float>(device, {4}, {0.1F, 0.05F, 0.3F, 1.5F});
  const Tensor whole = flat(start), means = flat(state), squares = flat(more);
  adamw_update(stream, {}, rates, whole, large, means, squares);
  const Tensor value = matrix(start), mean = matrix(state), square = matrix(more);
  adamw_update_rows(stream, {}, rates, rows, value, small, mean, square);
  expect_rows(value, start, whole);
  expect_rows(mean, state, means);
  expect_rows(square, more, squares);
}

/// Rows that come when they will, each as if it were alone; PyTorch's formula in double.
TEST_P(RowUpdates, AreCorrectedByTheirOwnCount) {
  constexpr std::int64_t kRows = 5, kColumns = 3;
  constexpr double kLr = 0.01, kBeta1 = 0.9, kBeta2 = 0.999, kDecay = 0.1;
  const AdamWSpec spec{.beta2 = static_cast<float>(kBeta2),
                       .square_share = static_cast<float>(1 - kBeta2),
                       .epsilon = 1e-8F};
  const std::vector<std::vector<std::int32_t>> steps = {
      {0, 2, -1}, {2, -1, -1}, {0, 2, 4}, {-1, -1, -1}, {2, 4, -1}};
  const auto start = random_floats(kRows * kColumns, 1);
  Device& device = *devices_[0];
  Stream& stream = device.compute();
  const Tensor value = upload(device, {kRows, kColumns}, start), mean(device, {kRows, kColumns}),
               square(device, {kRows, kColumns}), counts(device, {kRows}),
               corrections(device, {3, 2});
  for (const Tensor* zero : {&mean, &square, &counts}) fill(stream, 0, *zero);
  const Tensor lr = upload<float>(device, {1}, {static_cast<float>(kLr)}),
               skips = upload<float>(device, {1}, {0});
  // The last two numbers are those of a step that no row is at.
  const Tensor rates = upload<float>(
      device, {4}, {static_cast<float>(1 - kBeta1), static_cast<float>(kLr * kDecay), 77, 99});
  std::vector<double> values(start.begin(), start.end()), m(values.size()), v(values.size()),
      t(kRows);
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const auto gradient = random_floats(3 * kColumns, static_cast<std::uint32_t>(step) + 2);
    const Tensor rows = upload(device, {3}, steps[step]);
    adamw_count_rows(stream, spec, lr, rates, rows, counts, corrections, skips);  // counts nothing
    adamw_count_rows(stream, spec, lr, rates, rows, counts, corrections);
    adamw_update_rows(stream, spec, rates, rows, value, upload(device, {3, kColumns}, gradient),
                      mean, square, {}, corrections);
    for (std::size_t i = 0; i < 3; ++i) {
      if (steps[step][i] < 0) continue;
      const auto row = static_cast<std::size_t>(steps[step][i]);
      ++t[row];
      for (std::size_t k = 0; k < kColumns; ++k) {
        const std::size_t at = row * kColumns + k;
        const auto g = static_cast<double>(gradient[i * kColumns + k]);
        values[at] -= kLr * kDecay * values[at];
        m[at] = kBeta1 * m[at] + (1 - kBeta1) * g;
        v[at] = kBeta2 * v[at] + (1 - kBeta2) * g * g;
        values[at] -= kLr * m[at] / (1 - std::pow(kBeta1, t[row])) /
                      (std::sqrt(v[at] / (1 - std::pow(kBeta2, t[row]))) + 1e-8);
      }
    }
  }
  EXPECT_LT(relative_l2(read(value), values), 1e-6);
  EXPECT_EQ(read(counts), (std::vector<float>{2, 0, 4, 0, 2}));
  for (std::size_t k = kColumns; k < 2 * kColumns; ++k) EXPECT_EQ(read(value)[k], start[k]);
}

TEST_P(RowUpdates, TakeRowsOnceAndInOrder) {
  if (on_cuda()) GTEST_SKIP() << "a GPU cannot throw";
  Device& device = *devices_[0];
  const Tensor value(device, {4, 2}), gradient(device, {2, 2}), velocity(device, {4, 2});
  const Tensor rates = upload<float>(device, {2}, {0.1F, 0.9F});
  for (const std::vector<std::int32_t>& rows :
       {std::vector<std::int32_t>{1, 1}, {2, 1}, {-2, 1}, {1, 4}}) {
    EXPECT_THROW(sgd_update_rows(device.compute(), {}, rates, upload(device, {2}, rows), value,
                                 gradient, velocity),
                 ContractError);
  }
  EXPECT_THROW(sgd_update_rows(device.compute(), {}, rates,
                               upload<std::int32_t>(device, {2}, {0, 1}), value, gradient, {}),
               ContractError);
}

TEST_P(RowUpdates, SoftmaxInShardsIsThatOfTheWhole) {
  constexpr std::int64_t kSamples = 33, kClasses = 8, kHalf = 4;
  const auto logits = random_floats(kSamples * kClasses, 1, -9, 9);
  const auto labels = random_labels(kSamples, 2, kClasses);
  const auto result = [&](Device& device) {
    Stream& stream = device.compute();
    const Tensor parts(device, {2, kSamples, 3}), merged(device, {kSamples, 3});
    Tensor loss(device, {1});
    const Tensor all_labels = upload(device, {kSamples}, labels);
    for (int q = 0; q < 2; ++q) {
      std::vector<float> half;
      for (std::int64_t n = 0; n < kSamples; ++n) {
        const auto begin = logits.begin() + n * kClasses + q * kHalf;
        half.insert(half.end(), begin, begin + kHalf);
      }
      const View part = parts.view()
                            .reshaped({2 * kSamples * 3})
                            .slice(q * kSamples * 3, (q + 1) * kSamples * 3)
                            .reshaped({kSamples, 3});
      softmax_shard_forward(stream, upload(device, {kSamples, kHalf}, half), all_labels, q * kHalf,
                            part);
    }
    softmax_shards_merge(stream, parts, merged);
    softmax_shards_loss(stream, merged, loss);
    return loss;
  };
  Device& device = *devices_[0];
  const Tensor expected(device, {1}), kept(device, {kSamples, kClasses});
  softmax_cross_entropy_forward(device.compute(), upload(device, {kSamples, kClasses}, logits),
                                upload(device, {kSamples}, labels), kept, expected);
  EXPECT_NEAR(read(run(result))[0], read(expected)[0], 1e-5 * read(expected)[0]);
}

TEST_P(RowUpdates, SquareSumsAreThoseOfEachRange) {
  constexpr std::int64_t kCount = 70000, kSums = 4;
  const auto x = random_floats(kCount, 1);
  const std::vector<SquareRange> ranges{{16, 60003, 1}, {0, 7, 3}, {32, 32, 0}};
  const auto bytes = static_cast<std::int64_t>(ranges.size() * sizeof(SquareRange));
  const auto sums_of = [&](bool at_once) {
    return read(run([&](Device& device) {
      Stream& stream = device.compute();
      const Tensor all = upload(device, {kCount}, x), table(device, {bytes}, DType::u8);
      copy_from_host(stream, ranges.data(), table);
      Tensor numbers(device, {2 * kSums});  // doubles, as f32
      fill(stream, 0, numbers);
      const View sums(numbers.view().address(), {kSums * kDoubleBytes}, DType::u8);
      if (at_once) {
        square_sums(stream, all, table, 60000, sums);
      } else {
        for (const auto& [begin, end, sum] : ranges) {
          square_sum(stream, all.view().slice(begin, end),
                     sums.slice(sum * kDoubleBytes, (sum + 1) * kDoubleBytes));
        }
      }
      return numbers;
    }));
  };
  const std::vector<float> expected = sums_of(false);
  EXPECT_NE(expected[3], 0);
  EXPECT_EQ(sums_of(true), expected);
}

TEST_P(RowUpdates, ANormOfSumsIsTheNorm) {
  const auto x = random_floats(5000, 1);
  const Tensor norm = run([&](Device& device) {
    Stream& stream = device.compute();
    const Tensor all = upload(device, {5000}, x), sums(device, {2 * kDoubleBytes}, DType::u8);
    square_sum(stream, all.view().slice(0, 4097), sums.view().slice(0, kDoubleBytes));
    square_sum(stream, all.view().slice(4097, 5000),
               sums.view().slice(kDoubleBytes, 2 * kDoubleBytes));
    Tensor result(device, {1});
    norm_of_sums(stream, sums, result);
    return result;
  });
  Device& device = *devices_[0];
  const Tensor expected(device, {1});
  l2_norm(device.compute(), upload(device, {5000}, x), expected);
  EXPECT_FLOAT_EQ(read(norm)[0], read(expected)[0]);
}

}  // namespace
}  // namespace ringlet::test
