// CostModel: the formulas of each strategy, and what a fit finds again.
#include "comm/all_reduce/cost_model.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "comm/all_reduce/strategies.h"

namespace ringlet::comm {
namespace {

constexpr CostModel kMachine{2e-6, 1e-10, 3e-11};

PathCostOf cost_of(std::string_view strategy) { return Strategies().find(strategy)->path_cost; }

void expect_path(const char* strategy, int ranks, const PathCost& expected) {
  const PathCost path = cost_of(strategy)(ranks, 1);
  EXPECT_DOUBLE_EQ(path.steps, expected.steps) << strategy << " of " << ranks;
  EXPECT_DOUBLE_EQ(path.bytes, expected.bytes) << strategy << " of " << ranks;
  EXPECT_DOUBLE_EQ(path.reduced_bytes, expected.reduced_bytes) << strategy << " of " << ranks;
}

TEST(CostModel, HasTheTextbooksFormulas) {
  expect_path("naive", 8, {14, 14, 7});
  expect_path("tree", 8, {6, 6, 3});
  expect_path("tree", 5, {6, 6, 3});
  expect_path("ring", 8, {14, 1.75, 0.875});
  expect_path("halving-doubling", 8, {6, 1.75, 0.875});
  expect_path("doubling", 8, {3, 3, 3});
  expect_path("one-shot", 8, {1, 8, 7});
  expect_path("two-shot", 8, {2, 1.75, 0.875});
  expect_path("nccl", 8, {14, 1.75, 0.875});
  expect_path("gloo", 8, {14, 1.75, 0.875});
  expect_path("library", 8, {14, 2, 1});
}

TEST(CostModel, FoldsInTheRanksBeyondAPowerOfTwo) {
  expect_path("doubling", 6, {2 + 2, 2 + 2, 2 + 1});
  expect_path("halving-doubling", 6, {4 + 2, 1.5 + 2, 0.75 + 1});
}

TEST(CostModel, TakesNothingForOneRank) {
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    EXPECT_EQ(predicted_seconds(strategy.path_cost, 1, 1 << 20, kMachine), 0) << strategy.name;
    EXPECT_GT(predicted_seconds(strategy.path_cost, 2, 1 << 20, kMachine), 0) << strategy.name;
  }
}

TEST(CostModel, AddsLatencyBytesAndReduction) {
  EXPECT_DOUBLE_EQ(predicted_seconds(cost_of("ring"), 4, 1e6, kMachine),
                   6 * 2e-6 + 1.5e6 * 1e-10 + 0.75e6 * 3e-11);
}

std::vector<CostPoint> points_of(const char* strategy, int ranks, const CostModel& model) {
  std::vector<CostPoint> points;
  for (double bytes = 4096; bytes <= 64 << 20; bytes *= 4) {
    points.push_back({ranks, bytes, predicted_seconds(cost_of(strategy), ranks, bytes, model)});
  }
  return points;
}

TEST(CostFit, FindsTheMachineAgainAndFoldsReductionIntoTheBytes) {
  const auto fit = fit_cost_model(cost_of("ring"), points_of("ring", 4, kMachine));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->model.latency_s, 2e-6, 1e-12);
  EXPECT_NEAR(fit->model.seconds_per_byte, 1e-10 + 3e-11 / 2, 1e-16);
  EXPECT_LT(fit->worst_error, 1e-9);
}

TEST(CostFit, PredictsOtherNumbersOfRanks) {
  const auto fit = fit_cost_model(cost_of("doubling"), points_of("doubling", 2, kMachine));
  ASSERT_TRUE(fit);
  const double expected = predicted_seconds(cost_of("doubling"), 16, 1 << 20, kMachine);
  EXPECT_NEAR(predicted_seconds(cost_of("doubling"), 16, 1 << 20, fit->model), expected,
              1e-9 * expected);
}

TEST(CostFit, CountsSmallSizesAsMuchAsLargeOnes) {
  std::vector<CostPoint> points = points_of("ring", 2, kMachine);
  points.back().seconds *=
      1.5;  // 64 MiB outweighs 4 KiB ten-thousandfold where errors are absolute
  const auto fit = fit_cost_model(cost_of("ring"), points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->model.latency_s, 2e-6, 3e-7);
  EXPECT_GT(fit->worst_error, 0.2);
  EXPECT_LT(fit->median_error, 0.1);
}

TEST(CostFit, CountsHalfAndTwiceAlike) {
  const CostPoint points[] = {{2, 1e3, 1e-6}, {2, 1e3, 4e-6}, {2, 1.0001e3, 2e-6}};
  const auto fit = fit_cost_model(cost_of("ring"), points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(predicted_seconds(cost_of("ring"), 2, 1e3, fit->model), 2e-6, 1e-8);
  EXPECT_NEAR(fit->worst_error, 1, 0.01);
}

TEST(CostFit, KeepsBothNumbersFromBecomingNegative) {
  const CostPoint falling[] = {{2, 1e3, 2e-5}, {2, 1e6, 1e-5}};
  const auto flat = fit_cost_model(cost_of("ring"), falling);
  ASSERT_TRUE(flat);
  EXPECT_EQ(flat->model.seconds_per_byte, 0);
  EXPECT_GT(flat->model.latency_s, 0);
  const CostPoint steep[] = {{2, 1e3, 1e-9}, {2, 1e6, 1e-3}};
  const auto line = fit_cost_model(cost_of("ring"), steep);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->model.latency_s, 0);
  EXPECT_GT(line->model.seconds_per_byte, 0);
}

TEST(CostFit, OfWhatNobodyHereKnowsIsALine) {
  const CostPoint points[] = {{4, 1e3, 2e-6 + 1e-7}, {4, 1e6, 2e-6 + 1e-4}};
  const auto fit = fit_cost_model(cost_of_one_message, points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->model.latency_s, 2e-6, 1e-12);
  EXPECT_NEAR(fit->model.seconds_per_byte, 1e-10, 1e-16);
}

TEST(CostFit, NeedsTwoSizes) {
  EXPECT_FALSE(fit_cost_model(cost_of("ring"), {}));
  const CostPoint same[] = {{2, 4096, 1e-5}, {2, 4096, 2e-5}};
  EXPECT_FALSE(fit_cost_model(cost_of("ring"), same));
}

}  // namespace
}  // namespace ringlet::comm
