// What `bench train --replicas 1,2,4` makes of its rounds, and what it predicts from them.
#include "bench/training/scaling.h"

#include <gtest/gtest.h>

#include "base/core_pace.h"
#include "bench/training/scaling_forecast.h"
#include "bench/training/scaling_turns.h"
#include "data/synthetic.h"
#include "train/trainer.h"

namespace ringlet::bench {
namespace {

constexpr int kManyRounds = 11;  // the sixth is in the middle

/// Two ranks that do two steps: in each another one comes last, and waits 2 for the sum.
std::vector<RankRound> two_ranks() {
  RankRound first{.seconds = 40, .samples = 80}, second = first;
  first.steps = {{.step = 20, .compute = 10, .sync = 7, .update = 1, .data = 1},
                 {.step = 20, .compute = 15, .sync = 2, .update = 1, .data = 1}};
  second.steps = {{.step = 20, .compute = 15, .sync = 2, .update = 1, .data = 1},
                  {.step = 20, .compute = 12, .sync = 5, .update = 2, .data = 0}};
  return {first, second};
}

TEST(ScalingRound, TellsTheSlowestFromTheSum) {
  std::vector<RankRound> ranks = two_ranks();
  const ScalingRound round = round_of(ranks);
  EXPECT_DOUBLE_EQ(round.rate, 2);
  EXPECT_DOUBLE_EQ(round.parts.sums, 2);
  EXPECT_DOUBLE_EQ(round.parts.waiting, (5 + 3) / 4.0);
  EXPECT_DOUBLE_EQ(round.parts.compute, (10 + 15 + 15 + 12) / 4.0);
  EXPECT_DOUBLE_EQ(round.parts.update, 1.25);
  EXPECT_DOUBLE_EQ(round.parts.data, 0.75);
  EXPECT_DOUBLE_EQ(round.parts.between, 1);
  EXPECT_DOUBLE_EQ(round.parts.step(), 20);
  EXPECT_EQ(round.compute, (std::vector<double>{12.5, 13.5}));
  EXPECT_EQ(round.last, (std::vector<double>{1, 1}));
  for (RankRound& rank : ranks) rank.steps.clear();
  EXPECT_DOUBLE_EQ(round_of(ranks).rate, 2) << "a GPU's host sees no steps";
  EXPECT_EQ(round_of(ranks).parts.step(), 0);
}

/// A row of which a step takes so long, with rounds that differ by a thousandth.
ScalingRow row_of(int replicas, double step, std::int64_t batch = 64 * 45) {
  ScalingRow row{.replicas = replicas, .batch = batch};
  for (int i = 0; i < kManyRounds; ++i) {
    const double seconds = step * (1 + 1e-4 * (i - 5));
    row.rounds.push_back(
        {.rate = static_cast<double>(batch) / seconds,
         .parts = {.compute = seconds},
         .compute = std::vector<double>(static_cast<std::size_t>(replicas), step)});
  }
  return row;
}

ScalingRow judged(ScalingRow row) {
  judge(row);
  return row;
}

TEST(JudgeScaling, CountsWhatNobodyDisturbs) {
  ScalingRow row = row_of(2, 0.01);
  row.quickest = 0.0099;
  row.middle = 0.01;
  row.rounds.front().rate /= 20;  // a stall
  row.rounds.front().parts.compute *= 20;
  judge(row);
  EXPECT_TRUE(row.counts()) << row.why_not;
  EXPECT_NEAR(row.rate.value, 64 * 45 / 0.01, 100);
  EXPECT_TRUE(row.rate.has_interval());
  EXPECT_NEAR(row.parts.step(), 0.01, 1e-5) << "the stall is left out";
}

TEST(JudgeScaling, SaysWhyARowDoesNotCount) {
  ScalingRow wide = row_of(2, 0.01);
  for (std::size_t i = 0; i < 4; ++i) wide.rounds[i].rate /= 2;
  const std::string why = judged(wide).why_not;
  EXPECT_EQ(why.substr(0, 38), "its rounds place the median only betwe") << why;
  EXPECT_EQ(why.find("e+"), std::string::npos) << why;
  wide.shares = true;
  EXPECT_TRUE(judged(wide).counts()) << "who takes turns has rounds that differ";

  ScalingRow stalled = row_of(2, 0.01);
  stalled.quickest = 0.001;
  stalled.middle = 0.01;
  EXPECT_EQ(judged(stalled).why_not, "half of its steps took 10 times the quickest or longer");

  ScalingRow kept = row_of(2, 0.01);
  kept.seen = {{.seconds = 10, .waited = 0.1}, {.seconds = 10, .waited = 4}};
  EXPECT_EQ(judged(kept).why_not, "other work had a replica's processor for 40 % of the time");

  ScalingRow few = row_of(2, 0.01);
  few.rounds.resize(1);
  EXPECT_TRUE(judged(few).counts());
  EXPECT_FALSE(judged(few).rate.has_interval());
}

TEST(JudgeScaling, SaysWhoComesLast) {
  ScalingRow row = row_of(2, 0.01);
  for (ScalingRound& round : row.rounds) {
    round.compute = {0.008, 0.01};
    round.last = {1, 3};
  }
  judge(row);
  EXPECT_EQ(row.often_last(), 1);
  EXPECT_DOUBLE_EQ(row.last[1], 0.75);
  EXPECT_NEAR(row.spread, 0.25, 1e-12);
  EXPECT_EQ(judged(row_of(1, 0.01)).often_last(), -1);
}

std::vector<ScalingRow> compared(std::vector<ScalingRow> rows) {
  for (ScalingRow& row : rows) judge(row);
  compare_with_first(rows);
  return rows;
}

TEST(Efficiency, IsOfTheSmallestNumber) {
  const std::vector<ScalingRow> rows = compared({row_of(2, 0.012), row_of(4, 0.008)});
  EXPECT_DOUBLE_EQ(rows[0].speedup.value, 1);
  EXPECT_DOUBLE_EQ(rows[0].efficiency.value, 1);
  EXPECT_NEAR(rows[1].speedup.value, 1.5, 1e-9);
  EXPECT_NEAR(rows[1].efficiency.value, 0.75, 1e-9);
  EXPECT_LT(rows[1].efficiency.low, 0.75);
  EXPECT_GT(rows[1].efficiency.high, 0.75);
  EXPECT_GT(rows[1].efficiency.low, 0.745);
}

TEST(Efficiency, OfOneBatchAReplicaIsThatOfSamples) {
  const std::vector<ScalingRow> rows = compared({row_of(1, 0.010, 64), row_of(4, 0.0125, 256)});
  EXPECT_NEAR(rows[1].speedup.value, 3.2, 1e-9);
  EXPECT_NEAR(rows[1].efficiency.value, 0.8, 1e-9);
}

TEST(Efficiency, IsNotKnownOfRowsThatDoNotCount) {
  ScalingRow busy = row_of(1, 0.01);
  busy.seen = {{.seconds = 10, .waited = 4}};
  const std::vector<ScalingRow> rows = compared({busy, row_of(2, 0.005)});
  EXPECT_EQ(rows[1].speedup.value, 0);
  EXPECT_EQ(not_counting(rows), "the machine was busy: 1 of 2 rows does not count");
  EXPECT_EQ(not_counting(compared({row_of(1, 0.01)})), "");
}

TEST(FitTerms, FindsCoefficientsOfWhichNoneIsNegative) {
  const std::vector<std::vector<double>> terms{{1, 1, 0}, {0.5, 1, 1}, {0.25, 1, 3}, {0.125, 1, 7}};
  std::vector<double> seconds;
  for (const auto& row : terms) seconds.push_back(0.008 * row[0] + 0.002 + 0.0001 * row[2]);
  const std::vector<double> found = fit_terms(terms, seconds);
  EXPECT_NEAR(found[0], 0.008, 1e-9);
  EXPECT_NEAR(found[1], 0.002, 1e-9);
  EXPECT_NEAR(found[2], 0.0001, 1e-10);
  // Faster than its share: no term below 0 makes up for it.
  const std::vector<double> bound = fit_terms({{1, 1}, {0.5, 1}}, {0.010, 0.004});
  EXPECT_EQ(bound[1], 0);
  EXPECT_GT(bound[0], 0.008);
}

/// Of numbers of replicas in a world where a step takes `seconds`.
template <class Seconds>
ScalingForecast forecast_in(const std::vector<int>& counts, Seconds seconds,
                            BatchRule rule = BatchRule::fixed) {
  std::vector<ScalingRow> rows;
  for (const int count : counts) {
    rows.push_back(row_of(count, seconds(count),
                          rule == BatchRule::fixed ? 64 * 45 : std::int64_t{64} * count));
  }
  return forecast_of(compared(rows), rule, Layout::nchw);
}

TEST(ScalingForecast, FindsWhatOneMoreGives) {
  // What does not shrink: (2.5 + 1) / (2 + 1) of five replicas over four.
  const ScalingForecast pays = forecast_in({1, 2, 4}, [](int p) { return 10.0 / p + 1; });
  EXPECT_EQ(pays.pays, Pays::yes);
  EXPECT_EQ(pays.from, 4);
  EXPECT_NEAR(pays.gain.value, 3.5 / 3, 2e-3);
  EXPECT_LE(pays.gain.low, 3.5 / 3);
  EXPECT_GE(pays.gain.high, 3.5 / 3);
  EXPECT_NEAR(pays.most, 1.25, 1e-12);
  // What each further one adds: 2.5 + 3 of four, and 2 + 4 of five.
  const ScalingForecast costs = forecast_in({1, 2, 4}, [](int p) { return 10.0 / p + p - 1; });
  EXPECT_EQ(costs.pays, Pays::no);
  EXPECT_NEAR(costs.gain.value, 5.5 / 6, 2e-3);
}

TEST(ScalingForecast, OfTwoRowsHoldsBothWays) {
  // t(3) is 8/3 + 2, if what hinders stays, and 10/3 + 2, if it grows.
  const ScalingForecast open = forecast_in({1, 2}, [](int p) { return p == 1 ? 10.0 : 6.0; });
  EXPECT_NEAR(open.gain.low, 6 / (10.0 / 3 + 2), 5e-3);
  EXPECT_NEAR(open.gain.high, 6 / (8.0 / 3 + 2), 5e-3);
  EXPECT_EQ(open.pays, Pays::unknown);
  EXPECT_EQ(in_words(open).find("would another device pay here? it cannot be said: 3 replicas"),
            0U);
  // Nothing hinders: both ways say so.
  EXPECT_EQ(forecast_in({1, 2}, [](int p) { return 10.0 / p; }).pays, Pays::yes);
}

TEST(ScalingForecast, PromisesNoMoreThanAReplica) {
  const ScalingForecast forecast =
      forecast_in({1, 2, 3}, [](int p) { return 10.0 / (p * p); });  // caches that fit
  EXPECT_LE(forecast.gain.high, forecast.most);
  EXPECT_NEAR(forecast.most, 4.0 / 3, 1e-12);
}

TEST(ScalingForecast, OfOneBatchAReplica) {
  const auto grows = [](int p) { return 1 + 0.01 * (p - 1); };
  const ScalingForecast forecast = forecast_in({1, 2, 4}, grows, BatchRule::per_replica);
  EXPECT_EQ(forecast.pays, Pays::yes);
  EXPECT_NEAR(forecast.gain.value, 5.0 / 4 * 1.03 / 1.04, 2e-3);
}

TEST(ScalingForecast, GoesOnFromWhatCountsAndSharesNothing) {
  std::vector<ScalingRow> rows{row_of(1, 10), row_of(2, 5.5), row_of(4, 5.4)};
  rows[2].shares = true;
  const ScalingForecast forecast = forecast_of(compared(rows), BatchRule::fixed, Layout::nchw);
  EXPECT_EQ(forecast.from, 2);
  EXPECT_GT(forecast.gain.value, 1.2);

  rows[1].seen = {{.seconds = 10, .waited = 4}};
  const ScalingForecast busy = forecast_of(compared(rows), BatchRule::fixed, Layout::nchw);
  EXPECT_EQ(in_words(busy),
            "would another device pay here? it cannot be said: the row of 2 does not count");
  EXPECT_EQ(forecast_of(compared({row_of(2, 5)}), BatchRule::fixed, Layout::nchw).pays,
            Pays::unknown);
}

TEST(ScalingForecast, KnowsNothingOfAnotherLayout) {
  std::vector<ScalingRow> rows = compared({row_of(1, 10), row_of(2, 5)});
  for (ScalingRow& row : rows) row.layout = Layout::lanes;
  const ScalingForecast forecast = forecast_of(rows, BatchRule::fixed, Layout::nchw);
  EXPECT_EQ(forecast.pays, Pays::unknown);
  EXPECT_EQ(forecast.why, "with 3 replicas the samples of each would lie in another layout, nchw");
  EXPECT_EQ(forecast_of(rows, BatchRule::fixed, Layout::lanes).pays, Pays::yes);
}

TEST(ScalingForecast, SaysNoWhereNoSampleIsLeft) {
  const std::vector<ScalingRow> rows = compared({row_of(1, 10, 2), row_of(2, 5, 2)});
  EXPECT_EQ(in_words(forecast_of(rows, BatchRule::fixed, Layout::nchw)),
            "would another device pay here? no: a batch of 2 has no sample for one more replica");
  // Of 4 samples three replicas leave two to one of them, as two do.
  const std::vector<ScalingRow> uneven = compared({row_of(1, 10, 4), row_of(2, 5, 4)});
  EXPECT_EQ(forecast_of(uneven, BatchRule::fixed, Layout::nchw).pays, Pays::no);
}

TEST(ScalingForecast, NamesWhatLimits) {
  std::vector<ScalingRow> rows{row_of(1, 10), row_of(2, 7)};
  for (ScalingRound& round : rows[0].rounds) round.parts = {.compute = 9, .update = 1};
  for (ScalingRound& round : rows[1].rounds) {
    round.parts = {.compute = 4.6, .sums = 1.1, .waiting = 0.3, .update = 1};
  }
  const ScalingForecast forecast = forecast_of(compared(rows), BatchRule::fixed, Layout::nchw);
  EXPECT_EQ(forecast.limit, "synchronization that is not hidden");
  EXPECT_NEAR(forecast.lost, 2, 1e-12);
  EXPECT_NEAR(forecast.largest, 1.1, 1e-12);
}

/// Steps of 1 s, and of the first row 10 times as long in the first `stalled` calls of some.
class FakeRounds {
 public:
  explicit FakeRounds(int stalled) : stalled_(stalled) {}
  std::vector<RankRound> operator()(std::size_t row, std::int64_t warm_up, std::int64_t steps) {
    calls.push_back({row, warm_up, steps});
    const bool stalls = row == 0 && calls_of_first_++ < stalled_ && calls_of_first_ % 2 == 0;
    const double step = stalls ? 10 : 1;
    RankRound round{.seconds = step * static_cast<double>(steps), .samples = 8 * steps};
    round.steps.assign(static_cast<std::size_t>(steps), {.step = step, .compute = step});
    round.core = {.looks = 2, .shared = 0};
    std::vector<RankRound> ranks(row + 1, round);
    ranks.back().core.shared = static_cast<std::int64_t>(row + steps % 2);
    return ranks;
  }
  struct Call {
    std::size_t row;
    std::int64_t warm_up, steps;
  };
  std::vector<Call> calls;

 private:
  int stalled_, calls_of_first_ = 0;
};

std::vector<ScalingRow> two_rows() {
  return {{.replicas = 1, .batch = 8}, {.replicas = 2, .batch = 8}};
}

TEST(MeasureScaling, TakesTurns) {
  FakeRounds rounds(0);
  std::vector<ScalingRow> rows = two_rows();
  double said = 0;
  measure_scaling(rows, {.steps = 13, .warm_up = 3, .begins = [&](double all) { said = all; }},
                  std::ref(rounds));
  ASSERT_EQ(rounds.calls.size(), 2U + 2 * 6) << "a try, and six rounds of two steps";
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < rounds.calls.size(); ++i) {
    EXPECT_EQ(rounds.calls[i].row, i % 2);
    EXPECT_EQ(rounds.calls[i].warm_up, 3);
    if (i >= 2) steps += rounds.calls[i].steps;
  }
  EXPECT_EQ(steps, 2 * 13);
  EXPECT_GE(said, 2 * 13);
  EXPECT_EQ(rows[1].rounds.size(), 6U);
  EXPECT_TRUE(rows[1].counts());
  EXPECT_DOUBLE_EQ(rows[1].rate.value, 8);
  ASSERT_EQ(rows[1].cores.size(), 2U);
  EXPECT_EQ(rows[1].cores[1].looks, 12);
  EXPECT_EQ(rows[1].cores[1].shared, 7) << "one of the rounds has three steps";
  EXPECT_DOUBLE_EQ(rows[0].shared_core(), 1.0 / 12);
  EXPECT_DOUBLE_EQ(rows[1].shared_core(), 7.0 / 12) << "of the replica with the most";
  EXPECT_LT(two_rows().front().shared_core(), 0) << "nobody looked";
}

TEST(MeasureScaling, MeasuresAgainWhatWasDisturbed) {
  std::vector<ScalingRow> rows = two_rows();
  FakeRounds rounds(7);
  measure_scaling(rows, {.steps = 12, .warm_up = 1, .budget_seconds = 20}, std::ref(rounds));
  EXPECT_EQ(rounds.calls.size(), 2U + 2 * 6 + 6) << "of the first row alone";
  EXPECT_TRUE(rows[0].counts()) << rows[0].why_not;
  EXPECT_DOUBLE_EQ(rows[0].rate.value, 8);
  EXPECT_EQ(rows[0].rounds.size(), 6U);
  EXPECT_NEAR(rows[1].speedup.value, 1, 1e-12);

  rows = two_rows();
  FakeRounds again(7);
  measure_scaling(rows, {.steps = 12, .warm_up = 1, .budget_seconds = 11}, std::ref(again));
  EXPECT_EQ(again.calls.size(), 2U + 2 * 6) << "six rounds do not fit the budget";
  EXPECT_FALSE(rows[0].counts());
}

TEST(MeasureRound, HasEachRanksSteps) {
  train::TrainOptions options{.recipe = train::default_recipe("mlp")};
  options.recipe.batch_size = 8;
  options.recipe.epochs = 1000;
  options.execution.devices.assign(2, {DeviceKind::cpu, 0});
  const data::Splits data = data::make_synthetic({.train = 80, .test = 20});
  train::RunSetup setup = train::make_run_setup(options, data, 2);
  comm::LocalGroup group = train::threads_of(options.execution);
  const std::vector<RankRound> ranks = measure_round(group, setup, 2, 5);
  ASSERT_EQ(ranks.size(), 2U);
  for (const RankRound& rank : ranks) {
    EXPECT_EQ(rank.samples, 40);
    EXPECT_EQ(rank.core.looks, core_pace().knows_sums() ? 2 : 0);
    ASSERT_EQ(rank.steps.size(), 5U);
    double steps = 0;
    for (const RankSeconds& step : rank.steps) {
      steps += step.step;
      EXPECT_GT(step.compute, 0);
      EXPECT_GE(step.step, step.compute + step.sync + step.update + step.data - 1e-6);
    }
    EXPECT_LE(steps, rank.seconds);
  }
  setup.stop_requested = [] { return true; };
  comm::LocalGroup other = train::threads_of(options.execution);
  EXPECT_THROW((void)measure_round(other, setup, 2, 5), Stopped);
}

}  // namespace
}  // namespace ringlet::bench
