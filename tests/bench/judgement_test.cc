// Which rows of the benchmark of all-reduce count, on signs that were made up: how rounds are laid
// out, the interval of a median, and what tells that other work disturbed it.
#include "bench/all_reduce/judgement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace ringlet::bench {
namespace {

TEST(Rounds, ShareTheCallsOut) {
  EXPECT_EQ(rounds_of(1), 1);
  EXPECT_EQ(rounds_of(kFewestJudged - 1), 1);
  EXPECT_EQ(rounds_of(kFewestJudged), kFewestJudged);
  EXPECT_EQ(rounds_of(13), kFewestJudged);
  EXPECT_EQ(rounds_of(2 * kRounds), kRounds);
  EXPECT_EQ(rounds_of(1000), kRounds);
  for (const int calls : {1, 5, 6, 11, 12, 1000}) {
    int sum = 0, most = 0, least = calls;
    for (int round = 0; round < rounds_of(calls); ++round) {
      const int here = calls_of_round(calls, rounds_of(calls), round);
      sum += here;
      most = std::max(most, here);
      least = std::min(least, here);
    }
    EXPECT_EQ(sum, calls);
    EXPECT_LE(most - least, 1);
    EXPECT_GE(least, 1);
  }
}

std::vector<double> one_to(int count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::iota(values.rbegin(), values.rend(), 1.0);
  return values;
}

using Interval = std::pair<double, double>;

// 1 - 2 P(B < k): 96.9 % of 6 with k = 1, 87.5 of 7 with k = 2, 98.8 of 11 with k = 2 and 93.5 with
// k = 3, 96.1 of 12 with k = 3.
TEST(IntervalOfMedian, LeavesOutAsManyRoundsAsItsCertaintyBears) {
  EXPECT_EQ(interval_of_median(one_to(5)), Interval(0, 0));
  EXPECT_EQ(interval_of_median(one_to(6)), Interval(1, 6));
  EXPECT_EQ(interval_of_median(one_to(7)), Interval(1, 7));
  EXPECT_EQ(interval_of_median(one_to(11)), Interval(2, 10));
  EXPECT_EQ(interval_of_median(one_to(12)), Interval(3, 10));
}

/// A row of 100 calls that nothing has disturbed.
Measurement quiet_row() {
  Measurement row;
  row.strategy = "ring";
  row.iterations = 100;
  row.pinned = true;
  row.min_us = 4.8;
  row.median_us = 5;
  row.p99_us = 20;
  row.low_us = 4.9;
  row.high_us = 5.2;
  row.rounds = kRounds;
  return row;
}

Measurement row_with(double low, double high) {
  Measurement row = quiet_row();
  row.low_us = low;
  row.high_us = high;
  return row;
}

/// Two ranks, of which one was taken off its processor so often, and waited for such a share.
RowSigns waits(std::int64_t switches, double share) {
  return {.ranks = {{.seconds = 2, .waited = 0.002, .switches = 3},
                    {.seconds = 2, .waited = 2 * share, .switches = switches}}};
}

TEST(WhyNot, IsNothingOfAQuietRow) {
  EXPECT_EQ(why_not(quiet_row(), {}), "");
  EXPECT_EQ(why_not(quiet_row(), waits(4, 0.002)), "");
}

TEST(WhyNot, IsThatRoundsDiffer) {
  EXPECT_EQ(why_not(row_with(4, 5.9), {}), "");
  EXPECT_EQ(why_not(row_with(4, 6.1), {}), "its rounds place the median only between 4 and 6.1 us");
  EXPECT_EQ(why_not(row_with(4, 6.1), waits(4, 0.34)),
            "its rounds place the median only between 4 and 6.1 us, other work had a rank's "
            "processor for 34 % of the time");
}

TEST(WhyNot, HasItsFiguresAsTheTableHasThem) {
  EXPECT_EQ(why_not(row_with(8013.4, 55398.4), {}),
            "its rounds place the median only between 8013 and 55398 us");
}

TEST(WhyNot, IsThatEachCallWasKeptWaitingAlthoughRoundsAgree) {
  Measurement row = row_with(7900, 8010);
  row.median_us = 7996;
  row.p99_us = 12000;
  EXPECT_EQ(why_not(row, waits(150, 0.6)),
            "half of its calls took 1666 times the quickest or longer, other work had a rank's "
            "processor for 60 % of the time, p99 is 2500 times the quickest call");
  row = quiet_row();
  row.median_us = 3.01 * row.min_us;
  EXPECT_NE(why_not(row, {}), "");
  row.median_us = 2.99 * row.min_us;
  EXPECT_EQ(why_not(row, {}), "");
}

// One slice of time lost among a hundred short calls moves no median; a part of each long one does.
TEST(WhyNot, IsAWaitOnlyWhereManyCallsMetWithOne) {
  EXPECT_EQ(why_not(quiet_row(), waits(24, 0.3)), "");
  EXPECT_EQ(why_not(quiet_row(), waits(25, 0.3)),
            "other work had a rank's processor for 30 % of the time");
  EXPECT_EQ(why_not(quiet_row(), waits(300, 0.09)), "");  // often, and never for long
}

TEST(WhyNot, GoesByTheSwitchesWhereWaitsAreNotKnown) {
  const auto switched = [](std::int64_t times) {
    return RowSigns{.ranks = {{.seconds = 2, .waited = -1, .switches = times}}};
  };
  EXPECT_EQ(why_not(quiet_row(), switched(119)), "");
  EXPECT_EQ(why_not(quiet_row(), switched(120)),
            "a rank was taken off its processor in many of its calls");
}

TEST(WhyNot, TakesACauseOnlyWhereTheFiguresAreShaken) {
  const RowSigns stolen{.ranks = {{.seconds = 1, .stolen = 12, .ticks = 100}}};
  EXPECT_EQ(why_not(quiet_row(), stolen), "");
  EXPECT_EQ(why_not(row_with(4.7, 5.6), stolen),
            "the machine's host took 12 % of the processors' time");
  RowSigns signs{.clock = 1.12};
  EXPECT_EQ(why_not(row_with(4.9, 5.6), signs), "");
  EXPECT_EQ(why_not(row_with(4.7, 5.6), signs), "a processor's clock changed by 12 %");
  const auto shared = [](std::vector<double> cores) {
    RowSigns of_ranks;
    of_ranks.shared_cores = std::move(cores);
    return of_ranks;
  };
  EXPECT_EQ(why_not(row_with(4.9, 5.6), shared({0.64, 0})), "");
  EXPECT_EQ(why_not(row_with(4.7, 5.6), shared({0, 0.64})),
            "a rank's core was shared for 64 % of the time");
  EXPECT_EQ(why_not(row_with(4.7, 5.6), shared({1, 0.5})),
            "a rank's core was shared for 50 % of the time");
  EXPECT_EQ(why_not(row_with(4.7, 5.6), shared({1, 0.02})), "") << "all calls took as much longer";
  EXPECT_EQ(why_not(row_with(4.7, 5.6), shared({-1, -1})), "") << "nobody knows";
  signs = {.moves = 3};
  Measurement row = row_with(4.7, 5.6);
  EXPECT_EQ(why_not(row, signs), "pinned ranks moved 3 times");
  EXPECT_EQ(why_not(row, {.moves = 1}), "pinned ranks moved once");
  row.pinned = false;
  EXPECT_EQ(why_not(row, signs), "");
  row.p99_us = 50 * row.min_us;
  EXPECT_EQ(why_not(row, signs), "p99 is 50 times the quickest call");
}

TEST(WhyNot, IsTheSpreadAloneWhereRanksTakeTurns) {
  RowSigns signs = waits(300, 0.5);
  signs.in_turns = true;
  Measurement row = row_with(4, 11.9);
  row.median_us = 10 * row.min_us;
  EXPECT_EQ(why_not(row, signs), "");
  row.high_us = 12.1;
  EXPECT_EQ(why_not(row, signs), "its rounds place the median only between 4 and 12.1 us");
}

TEST(WhyNot, IsNotAskedOfFewCalls) {
  Measurement row = row_with(0, 0);
  row.median_us = 1000 * row.min_us;
  EXPECT_EQ(why_not(row, waits(5, 0.9)), "");
}

TEST(Judge, SetsTimesIntervalAndWhetherTheRowCounts) {
  std::vector<std::vector<double>> rounds;
  for (int round = 1; round <= kRounds; ++round) {
    const double median = 1e-6 * (100 + round);
    rounds.push_back({median, 0.9 * median, 1.1 * median});
  }
  Measurement row;
  judge(row, rounds, {});
  EXPECT_EQ(row.iterations, 3 * kRounds);
  EXPECT_EQ(row.rounds, kRounds);
  EXPECT_NEAR(row.median_us, 106, 1e-9);
  EXPECT_NEAR(row.mean_us, 106, 1e-9);
  EXPECT_NEAR(row.low_us, 102, 1e-9);
  EXPECT_NEAR(row.high_us, 110, 1e-9);
  EXPECT_TRUE(row.counts);
  rounds[4] = {1, 1, 1};  // one bad round
  judge(row, rounds, {});
  EXPECT_NEAR(row.high_us, 111, 1e-9);
  EXPECT_TRUE(row.counts);
  rounds[5] = {1, 1, 1};
  judge(row, rounds, {});
  EXPECT_FALSE(row.counts);
  EXPECT_NE(row.why_not, "");
}

TEST(Judge, KnowsNoIntervalOfFewCalls) {
  Measurement row;
  judge(row, std::vector<std::vector<double>>{{1e-6, 2e-6, 9e-6}}, {});
  EXPECT_EQ(row.rounds, 1);
  EXPECT_FALSE(row.has_interval());
  EXPECT_TRUE(row.counts);
  EXPECT_DOUBLE_EQ(row.median_us, 2);
}

TEST(IsToKeep, PrefersWhatCountsAndThenWhatIsQuicker) {
  Measurement quick = quiet_row(), slow = quiet_row();
  slow.median_us = 9;
  EXPECT_TRUE(is_to_keep(quick, slow));
  EXPECT_FALSE(is_to_keep(slow, quick));
  quick.counts = false;
  EXPECT_FALSE(is_to_keep(quick, slow));
  EXPECT_TRUE(is_to_keep(slow, quick));
}

TEST(IsToKeep, ForgetsNoWrongResults) {
  Measurement wrong = quiet_row();
  wrong.counts = false;
  wrong.hashes = {"1", "2"};
  EXPECT_TRUE(is_to_keep(wrong, quiet_row()));
  EXPECT_FALSE(is_to_keep(quiet_row(), wrong));
}

}  // namespace
}  // namespace ringlet::bench
