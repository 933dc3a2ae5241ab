#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/sampling.h"

namespace ringlet::data {
namespace {

std::vector<std::int64_t> order(const Sampler& sampler, std::int64_t epoch) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < sampler.size(); ++i) indices.push_back(sampler.index(epoch, i));
  return indices;
}

class Bijection : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(Bijection, VisitsEverySampleOnceInEveryEpoch) {
  const std::int64_t size = GetParam();
  for (const std::uint64_t seed : {0ULL, 1ULL, 0xFFFFFFFFFFFFFFFFULL}) {
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<bool> visited(static_cast<std::size_t>(size), false);
      for (const std::int64_t index : order(Sampler(size, seed), epoch)) {
        ASSERT_GE(index, 0);
        ASSERT_LT(index, size);
        ASSERT_FALSE(visited[static_cast<std::size_t>(index)]) << index;
        visited[static_cast<std::size_t>(index)] = true;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Bijection,
                         ::testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100, 255,
                                           257, 1000, 1023, 4097, 10000, 60000));

TEST(Sampler, IsAConstantExpression) {
  constexpr Sampler kSampler(60000, 7);
  static_assert(kSampler.index(3, 14) < 60000);
  EXPECT_EQ(kSampler.index(3, 14), Sampler(60000, 7).index(3, 14));
}

TEST(Sampler, HoldsItsOrderForEver) {
  // A saved run continues in the order in which it began, so these numbers may not change.
  constexpr std::int64_t kGolden[] = {25568, 41682, 31047, 4876};
  const Sampler sampler(60000, 1);
  EXPECT_EQ(sampler.index(0, 0), kGolden[0]);
  EXPECT_EQ(sampler.index(0, 1), kGolden[1]);
  EXPECT_EQ(sampler.index(1, 0), kGolden[2]);
  EXPECT_EQ(sampler.index(9, 59999), kGolden[3]);
}

TEST(Sampler, WithoutShuffleKeepsTheOrder) {
  const Sampler sampler(1000, 3, false);
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(sampler.index(5, i), i);
}

TEST(Sampler, EpochsAndSeedsDiffer) {
  const auto first = order(Sampler(1000, 1), 0);
  const auto equal_positions = [&](const std::vector<std::int64_t>& other) {
    int count = 0;
    for (std::size_t i = 0; i < first.size(); ++i) count += first[i] == other[i] ? 1 : 0;
    return count;
  };
  EXPECT_EQ(order(Sampler(1000, 1), 0), first);
  EXPECT_LT(equal_positions(order(Sampler(1000, 1), 1)), 10);  // one is expected
  EXPECT_LT(equal_positions(order(Sampler(1000, 2), 0)), 10);
}

/// Sum of (found - expected)^2 / expected over cells that should be equally full.
double chi_square(const std::vector<int>& cells, double expected) {
  double sum = 0;
  for (const int found : cells) sum += (found - expected) * (found - expected) / expected;
  return sum;
}

/// A bound that a fair sampler stays below with a probability of about 1 - 1e-6 (Wilson, Hilferty).
double chi_square_bound(double freedom) {
  const double a = 2 / (9 * freedom);
  return freedom * std::pow(1 - a + 4.75 * std::sqrt(a), 3);
}

TEST(Sampler, EachPositionGetsEachSampleEquallyOften) {
  constexpr std::int64_t kSize = 37;
  constexpr int kEpochs = 20000;
  for (const std::int64_t position : {0, 1, 18, 36}) {
    std::vector<int> cells(kSize, 0);
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      ++cells[static_cast<std::size_t>(Sampler(kSize, 11).index(epoch, position))];
    }
    EXPECT_LT(chi_square(cells, double{kEpochs} / kSize), chi_square_bound(kSize - 1)) << position;
  }
}

TEST(Sampler, ThePartOfTheDataThatABatchComesFromIsFair) {
  // Sixteen consecutive positions against sixteen parts of the data, over many batches.
  constexpr std::int64_t kSize = 60000;
  std::vector<int> cells(16 * 16, 0);
  const Sampler sampler(kSize, 3);
  for (std::int64_t position = 0; position < kSize; ++position) {
    const std::int64_t part = sampler.index(4, position) * 16 / kSize;
    ++cells[static_cast<std::size_t>(position % 16 * 16 + part)];
  }
  EXPECT_LT(chi_square(cells, kSize / 256.0), chi_square_bound(255));
}

TEST(Sampler, NeighboursAreScattered) {
  // The cyclic distance of samples at neighbouring positions is uniform.
  constexpr std::int64_t kSize = 60000;
  std::vector<int> cells(100, 0);
  const Sampler sampler(kSize, 8);
  for (std::int64_t position = 0; position + 1 < kSize; ++position) {
    const std::int64_t distance =
        (sampler.index(0, position + 1) - sampler.index(0, position) + kSize) % kSize;
    ++cells[static_cast<std::size_t>(distance * 100 / kSize)];
  }
  EXPECT_LT(chi_square(cells, (kSize - 1) / 100.0), chi_square_bound(99));
}

TEST(Sampler, AnEpochTellsNothingAboutTheNext) {
  constexpr std::int64_t kSize = 60000;
  std::vector<int> cells(100, 0);
  const Sampler sampler(kSize, 8);
  for (std::int64_t position = 0; position < kSize; ++position) {
    const std::int64_t now = sampler.index(0, position) * 10 / kSize;
    const std::int64_t next = sampler.index(1, position) * 10 / kSize;
    ++cells[static_cast<std::size_t>(now * 10 + next)];
  }
  EXPECT_LT(chi_square(cells, kSize / 100.0), chi_square_bound(81));
}

}  // namespace
}  // namespace ringlet::data
