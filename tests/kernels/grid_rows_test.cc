// kernels/grid/: what is exchanged and updated by rows, on the host (grid_fixture.h).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/grid/adamw.h"
#include "kernels/grid/l2_norm.h"
#include "kernels/grid/row_sample.h"
#include "kernels/grid/row_updates.h"
#include "kernels/grid/rows.h"
#include "kernels/grid/sgd.h"
#include "kernels/grid/softmax_shards.h"
#include "tests/kernels/grid_fixture.h"
#include "tests/reference/elements.h"
#include "tests/reference/softmax_cross_entropy.h"

namespace ringlet::test {
namespace {

constexpr std::int64_t kRows = 9, kColumns = 7;
const std::vector<std::int32_t> kNamed = {0, 3, 4, 8};

/// Rows of `all` that are named; or all, where those come from `named` and the others stay.
std::vector<float> named_of(const std::vector<float>& all) {
  std::vector<float> rows;
  for (const std::int32_t row : kNamed) {
    const auto begin = all.begin() + row * kColumns;
    rows.insert(rows.end(), begin, begin + kColumns);
  }
  return rows;
}
std::vector<float> with_named(std::vector<float> all, const std::vector<float>& whole) {
  for (const std::int32_t row : kNamed) {
    std::copy_n(whole.begin() + row * kColumns, kColumns, all.begin() + row * kColumns);
  }
  return all;
}

// A dense step's bits where a row is named, and not a bit elsewhere.
TEST_P(Grid, RowsTakeTheStepOfTheWhole) {
  constexpr std::int64_t kCount = kRows * kColumns;
  const auto start = random_floats(kCount, 1), gradient = random_floats(kCount, 2),
             state = random_floats(kCount, 3, 0, 1), more = random_floats(kCount, 4, 0, 1);
  const View rows = put({std::ssize(kNamed)}, kNamed), scale = put<float>({1}, {0.5F});
  const View few = put({std::ssize(kNamed), kColumns}, named_of(gradient));
  for (const bool nesterov : {false, true}) {
    const SgdSpec spec{.weight_decay = 0.1F, .nesterov = nesterov};
    const View rates = put<float>({2}, {0.1F, 0.9F});
    const View whole = put({kCount}, start), speeds = put({kCount}, state);
    grid::sgd_update(grid_, spec, rates, whole, put({kCount}, gradient), speeds, scale);
    const View value = put({kRows, kColumns}, start), velocity = put({kRows, kColumns}, state);
    grid::sgd_update_rows(grid_, spec, rates, rows, value, few, velocity, scale);
    EXPECT_EQ(bits_of(read(value)), bits_of(with_named(start, read(whole))));
    EXPECT_EQ(bits_of(read(velocity)), bits_of(with_named(state, read(speeds))));
  }
  const View rates = put<float>({4}, {0.1F, 0.05F, 0.3F, 1.5F});
  const View whole = put({kCount}, start), means = put({kCount}, state),
             squares = put({kCount}, more);
  grid::adamw_update(grid_, {}, rates, whole, put({kCount}, gradient), means, squares, scale);
  const View value = put({kRows, kColumns}, start), mean = put({kRows, kColumns}, state),
             square = put({kRows, kColumns}, more);
  grid::adamw_update_rows(grid_, {}, rates, rows, value, few, mean, square, scale);
  EXPECT_EQ(bits_of(read(value)), bits_of(with_named(start, read(whole))));
  EXPECT_EQ(bits_of(read(mean)), bits_of(with_named(state, read(means))));
  EXPECT_EQ(bits_of(read(square)), bits_of(with_named(more, read(squares))));
}

TEST_P(Grid, RowsAreSkippedAndPassedOver) {
  const auto start = random_floats(kRows * kColumns, 1);
  const View value = put({kRows, kColumns}, start), state = put({kRows, kColumns}, start);
  const View broken = filled<float>({1, kColumns}, kNaN), zero = put<float>({1}, {0});
  const View rates = put<float>({2}, {0.5F, 0.9F});
  grid::sgd_update_rows(grid_, {}, rates, put<std::int32_t>({1}, {3}), value, broken, state, zero);
  grid::sgd_update_rows(grid_, {}, rates, put<std::int32_t>({1}, {9}), value, broken, state);
  grid::sgd_update_rows(grid_, {}, rates, put<std::int32_t>({1}, {-1}), value, broken, state);
  EXPECT_EQ(read(value), start);
  EXPECT_EQ(read(state), start);
  grid::sgd_update_rows(grid_, {}, rates, put<std::int32_t>({1}, {3}), value,
                        filled<float>({1, kColumns}, 1), {});
  EXPECT_TRUE(std::isnan(read(value)[3 * kColumns])) << "a momentum without velocities shows";
}

TEST_P(Grid, RowsAreGatheredFoundAndCounted) {
  const auto matrix = random_floats(kRows * kColumns, 1);
  std::vector<std::int32_t> listed = kNamed;
  listed.push_back(-1);
  const View rows = put({5}, listed), gathered = blank({5, kColumns}), inverse = blank({5}),
             of_named = blank({4});
  grid::gather_rows(grid_, put({kRows, kColumns}, matrix), rows, gathered, inverse);
  auto wanted = named_of(matrix);
  grid::inverse_norms(grid_, put({4, kColumns}, wanted), of_named);
  wanted.resize(5 * kColumns, 0);
  EXPECT_EQ(read(gathered), wanted);
  auto norms = read(of_named);
  norms.push_back(-1);
  EXPECT_EQ(bits_of(read(inverse)), bits_of(norms));

  const View columns = put<std::int32_t>({6}, {9, 9, 9, 9, 9, 9}),
             labels = put<std::int32_t>({6}, {20, 23, 24, 28, 22, -5});
  grid::find_rows(grid_, rows, labels, 20, 10, true, columns);
  EXPECT_EQ(read<std::int32_t>(columns), (std::vector<std::int32_t>{10, 11, 12, 13, 9, 9}));
  grid::find_rows(grid_, rows, labels, 20, 10, false, columns);
  EXPECT_EQ(read<std::int32_t>(columns), (std::vector<std::int32_t>{10, 11, 12, 13, -1, -1}));

  const View counts = put<float>({kRows}, {0, 5, 0, 1, 70000, 0, 0, 0, 2}),
             corrections = blank({5, 2});
  const View lr = put<float>({1}, {0.5F}), rates = put<float>({4}, {0.1F, 0, 0, 0});
  const AdamWSpec spec{.beta2 = 0.99F, .square_share = 0.01F};
  grid::adamw_count_rows(grid_, spec, lr, rates, rows, counts, corrections);
  EXPECT_EQ(read(counts), (std::vector<float>{1, 5, 0, 2, 70001, 0, 0, 0, 3}));
  const auto found = read(corrections);
  const double steps[] = {1, 2, 70001, 3};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(static_cast<double>(found[2 * i]), 0.5 / (1 - std::pow(0.9, steps[i])), 1e-6 * 5);
    EXPECT_NEAR(static_cast<double>(found[2 * i + 1]), 1 / std::sqrt(1 - std::pow(0.99, steps[i])),
                1e-6 * 10);
  }
  EXPECT_EQ(found[8], 0);
  EXPECT_EQ(found[9], 0);
}

/// The classes in parts of 4, 0 and the rest, as three ranks might have them.
TEST_P(Grid, SoftmaxInShardsIsThatOfTheWhole) {
  constexpr std::int64_t kSamples = 19, kClasses = 11;
  constexpr float kSeed = 0.25F;
  const auto logits = random_floats(kSamples * kClasses, 1, -20, 20);
  const auto labels = random_labels(kSamples, 2, kClasses);
  const double expected =
      reference::softmax_cross_entropy_forward<double>(kClasses, to_double(logits), labels);
  const auto gradient = reference::softmax_cross_entropy_backward<double>(
      kClasses, to_double(logits), labels, static_cast<double>(kSeed));
  const View all_labels = put({kSamples}, labels), parts = blank({3, kSamples, 3});
  const std::int64_t cuts[] = {0, 4, 4, kClasses};
  std::vector<View> columns;
  for (int q = 0; q < 3; ++q) {
    std::vector<float> of_part;
    for (std::int64_t n = 0; n < kSamples; ++n) {
      of_part.insert(of_part.end(), logits.begin() + n * kClasses + cuts[q],
                     logits.begin() + n * kClasses + cuts[q + 1]);
    }
    columns.push_back(put({kSamples, cuts[q + 1] - cuts[q]}, of_part));
    const View part(parts.f32() + q * kSamples * 3, {kSamples, 3});
    grid::softmax_shard_forward(grid_, columns.back(), all_labels, cuts[q], part);
  }
  const View merged = blank({kSamples, 3}), loss = blank({1}), sum = put<float>({1}, {2});
  grid::softmax_shards_merge(grid_, parts, merged);
  grid::softmax_shards_loss(grid_, merged, loss, sum);
  EXPECT_NEAR(static_cast<double>(read(loss)[0]), expected, 1e-6 * expected);
  EXPECT_EQ(read(sum)[0], 2 + read(loss)[0]);
  for (int q = 0; q < 3; ++q) {
    const std::int64_t width = cuts[q + 1] - cuts[q];
    const View dlogits = blank({kSamples, width});
    grid::softmax_shard_backward(grid_, columns[static_cast<std::size_t>(q)], all_labels, cuts[q],
                                 merged, put<float>({1}, {kSeed}), 0, dlogits);
    const auto found = read(dlogits);
    for (std::int64_t i = 0; i < dlogits.count(); ++i) {
      const std::int64_t at = i / width * kClasses + cuts[q] + i % width;
      EXPECT_NEAR(static_cast<double>(found[static_cast<std::size_t>(i)]),
                  gradient[static_cast<std::size_t>(at)], 1e-7);
    }
  }
  grid::softmax_shards_loss(grid_, View(merged.f32(), {0, 3}), loss);
  EXPECT_EQ(read(loss)[0], 0);
}

TEST_P(Grid, RowsOfSamples) {
  for (const std::int64_t n : {1, 17, 33}) {
    const auto values = random_floats(n * kColumns, 1);
    const View x = put({n, kColumns}, values), rows = blank({n, kColumns});
    grid::rows_forward(grid_, x, rows);
    EXPECT_EQ(read(rows), values);
    const View dx = put({n, kColumns}, values);
    grid::rows_backward(grid_, put({n, kColumns}, values), 1, dx);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(read(dx)[i], 2 * values[i]);
  }
}

TEST_P(Grid, SquareSumsAreThoseOfEachRange) {
  constexpr std::int64_t kPart = grid::SquareSums::kPart;
  const std::int64_t n = 5 * kPart;
  const auto x = random_floats(n, 7);
  const std::vector<SquareRange> ranges{
      {16, 16 + 3 * kPart + 5, 2}, {0, 7, 0}, {32, 32, 3}, {19, 19 + kPart, 5}};
  std::vector<double> sums(6, -1);
  const auto bytes = [](const auto& numbers) {
    return static_cast<std::int64_t>(numbers.size() * sizeof(numbers[0]));
  };
  std::vector<SquareRange> there = ranges;
  const View on_device = put({n}, x);
  grid::square_sums(grid_, on_device, View(there.data(), {bytes(there)}, DType::u8), 3 * kPart + 5,
                    View(sums.data(), {bytes(sums)}, DType::u8));
  std::vector<double> expected(6, -1);
  for (const SquareRange& range : ranges) {
    grid::square_sum(
        grid_, on_device.slice(range.begin, range.end),
        View(&expected[static_cast<std::size_t>(range.sum)], {kDoubleBytes}, DType::u8));
  }
  EXPECT_EQ(sums, expected);
}

TEST_P(Grid, ANormOfSums) {
  constexpr std::int64_t kPart = grid::SquareSums::kPart;
  std::vector<double> sums;
  double expected = 0;
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{3}, 3 * kPart + 2}) {
    const auto x = random_floats(n, static_cast<std::uint32_t>(n) + 1);
    double sum = 0;
    grid::square_sum(grid_, put({n}, x), View(&sum, {kDoubleBytes}, DType::u8));
    const double norm = reference::l2_norm(to_double(x));
    EXPECT_NEAR(sum, norm * norm, 1e-9 * norm * norm);
    sums.push_back(sum);
    expected += sum;
  }
  const View norm = blank({1}), factor = blank({1});
  const auto bytes = static_cast<std::int64_t>(sums.size()) * kDoubleBytes;
  grid::norm_of_sums(grid_, View(sums.data(), {bytes}, DType::u8), norm, {2, factor});
  EXPECT_FLOAT_EQ(read(norm)[0], static_cast<float>(std::sqrt(expected)));
  EXPECT_FLOAT_EQ(read(factor)[0], 2 / (read(norm)[0] + 1e-6F));
}

}  // namespace
}  // namespace ringlet::test
