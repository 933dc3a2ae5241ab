// Which rows a step has (nn/row_sampling.h): a function of seed, step and labels, whoever holds
// them.
#include "nn/row_sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace ringlet::nn {
namespace {

using List = std::vector<std::int32_t>;

const List kNamed = {3, 40, 3, 99, 700, -1, 5000};  // the last two are no rows

RowSampling sampling_of(double rate, int shards, std::uint64_t seed = 9) {
  return {.rate = rate, .shards = shards, .most_named = std::ssize(kNamed), .seed = seed};
}

/// The rows of all ranks, counted from the first of all.
List rows_of(const RowSampling& sampling, std::int64_t all, std::int64_t step, const List& named,
             int ranks, int exact_shards = 0) {
  List rows;
  for (int rank = 0; rank < ranks; ++rank) {
    const AxisPosition position{.rank = rank, .ranks = ranks, .shards = exact_shards};
    RowSampler sampler(sampling, all, position);
    const auto listed = sampler.list(step, named);
    const std::int64_t first = position.held(all, rank).begin;
    for (int index = 0; index < position.parts_of_rank(); ++index) {
      const Rows part = position.part(all, rank * position.parts_of_rank() + index);
      const Rows room = gradient_rows_of(sampling, all, position, index);
      EXPECT_EQ(room.size(), sampling.room(all, part));
      std::int64_t last = -1;
      bool ended = false;
      for (std::int64_t i = room.begin; i < room.end; ++i) {
        const std::int64_t row = listed[static_cast<std::size_t>(i)];
        ended = ended || row < 0;
        EXPECT_EQ(ended, row < 0) << "-1 is behind all rows of a part";
        if (row < 0) continue;
        EXPECT_GT(row, last);
        last = row;
        EXPECT_GE(first + row, part.begin);
        EXPECT_LT(first + row, part.end);
        rows.push_back(static_cast<std::int32_t>(first + row));
      }
    }
    EXPECT_EQ(std::ssize(listed),
              gradient_rows_of(sampling, all, position, position.parts_of_rank() - 1).end);
  }
  return rows;
}

TEST(RowSampling, ASetIsThatOfTheStepOnAnyNumberOfRanks) {
  for (const std::int64_t all : {1, 3, 7, 33, 1003}) {
    for (const double rate : {0.0, 0.1, 0.6}) {
      for (const int shards : {8, 9, 64}) {
        const RowSampling sampling = sampling_of(rate, shards);
        const List one = rows_of(sampling, all, 5, kNamed, 1);
        for (const int ranks : {2, 3, 4, 8}) {
          EXPECT_EQ(rows_of(sampling, all, 5, kNamed, ranks), one) << all << " " << ranks;
        }
        for (const int ranks : {1, 2, 4, 8}) {
          EXPECT_EQ(rows_of(sampling, all, 5, kNamed, ranks, 8), one) << all << " " << ranks;
        }
        for (const std::int32_t row : kNamed) {
          EXPECT_EQ(std::binary_search(one.begin(), one.end(), row), row >= 0 && row < all) << row;
        }
      }
    }
  }
}

/// floor(rate n) of each shard, or as many as are named.
TEST(RowSampling, HasSoManyOfEachShard) {
  constexpr std::int64_t kAll = 1003;
  for (const double rate : {0.0, 0.008, 0.29, 0.5}) {
    const RowSampling sampling = sampling_of(rate, 10);
    const List rows = rows_of(sampling, kAll, 2, kNamed, 2);
    for (int shard = 0; shard < 10; ++shard) {
      const Rows of_shard = sampling.shard(kAll, shard);
      const auto within = [&](std::int32_t row) {
        return row >= of_shard.begin && row < of_shard.end;
      };
      std::set<std::int32_t> named;
      std::ranges::copy_if(kNamed, std::inserter(named, named.end()), within);
      const auto hundredths = std::llround(1000 * rate) * of_shard.size() / 1000;
      EXPECT_EQ(std::ranges::count_if(rows, within), std::max<long>(hundredths, std::ssize(named)))
          << shard;
    }
  }
  EXPECT_EQ(sampling_of(0.29, 1).drawn(100), 29);  // 0.29 * 100 is less in double
  EXPECT_EQ(sampling_of(0.1, 1).drawn(9), 0);
}

TEST(RowSampling, OtherStepsAndSeedsHaveOthers) {
  const List here = rows_of(sampling_of(0.2, 8), 1003, 4, kNamed, 2);
  EXPECT_EQ(rows_of(sampling_of(0.2, 8), 1003, 4, kNamed, 2), here);
  EXPECT_NE(rows_of(sampling_of(0.2, 8), 1003, 5, kNamed, 2), here);
  EXPECT_NE(rows_of(sampling_of(0.2, 8, 10), 1003, 4, kNamed, 2), here);
}

/// Chi squared of how often each row is drawn, and of how often two neighbours are together.
TEST(RowSampling, DrawsAllRowsAlike) {
  constexpr int kRows = 96, kSteps = 3000;
  const RowSampling sampling{.rate = 0.25, .shards = 4, .most_named = 1, .seed = 3};
  RowSampler sampler(sampling, kRows, {});
  std::vector<double> drawn(kRows), pairs(kRows - 1);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<bool> here(kRows);
    for (const std::int32_t row : sampler.list(step, {})) {
      if (row >= 0) here[static_cast<std::size_t>(row)] = true;
    }
    for (std::size_t row = 0; row < kRows; ++row) {
      drawn[row] += here[row] ? 1 : 0;
      if (row > 0) pairs[row - 1] += here[row - 1] && here[row] ? 1 : 0;
    }
  }
  const auto chi_squared = [](const std::vector<double>& counts, double share) {
    const double expected = share * kSteps;
    double sum = 0;
    for (const double count : counts) {
      sum += (count - expected) * (count - expected) / (expected * (1 - share));
    }
    return sum;
  };
  // Of 92 free numbers, 150 is beyond 1 in 10,000.
  EXPECT_LT(chi_squared(drawn, 0.25), 150);
  std::vector<double> within;  // both of one shard of 24, six of which are drawn
  for (std::size_t row = 0; row + 1 < kRows; ++row) {
    if (row % 24 != 23) within.push_back(pairs[row]);
  }
  EXPECT_LT(chi_squared(within, 6.0 * 5 / (24 * 23)), 160);
}

}  // namespace
}  // namespace ringlet::nn
