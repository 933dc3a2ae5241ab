// What the kernels of kernels/grid/ stand on: division, plans of sums, the grid on the host. And
// the ways in which the fixture `Grid` runs them all.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/grid/bias.h"
#include "kernels/grid/divisor.h"
#include "tests/kernels/grid_fixture.h"

namespace ringlet::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Ways, Grid,
                         ::testing::Values(GridWay{"packs", 1, 0},
                                           GridWay{"packs_in_another_order", 2, 0},
                                           GridWay{"one_by_one", 3, 1},
                                           GridWay{"nhwc", 4, 0, Layout::nhwc},
                                           GridWay{"nhwc_one_by_one", 5, 1, Layout::nhwc}),
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
        const grid::ChannelSumPlan plan(samples, units, teams, 256, 660);
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
  void phase(int k, const grid::ThreadIndex& index, Shared& shared) const {
    if (k == 0) {
      shared.seen[index.thread] = 1;
    } else {
      for (const int one : shared.seen) (*sums)[static_cast<std::size_t>(index.block)] += one;
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
  void phase(int, const grid::ThreadIndex& index, Shared&) const {
    (*written)[static_cast<std::size_t>(index.block)] = true;
  }
  void team_phase(int, const grid::ThreadIndex& index, Shared&) const {
    const std::int64_t team = team_size.quotient(index.block), size = team_size.divisor();
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
