// Which runs a sweep makes, and what it says of their results.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/sweep/student_t.h"
#include "app/sweep/sweep_page.h"
#include "app/sweep/sweep_plan.h"
#include "app/sweep/sweep_results.h"
#include "base/files/file_error.h"

namespace ringlet::app::sweep {
namespace {

using Texts = std::vector<std::string>;

std::string error_of(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Outcomes with these accuracies, of runs that are done.
Outcomes done(const std::vector<double>& accuracies) {
  Outcomes outcomes;
  for (const double accuracy : accuracies) {
    outcomes.push_back({.status = Status::done,
                        .epochs = 1,
                        .train_loss = 0.5,
                        .test_loss = 1 - accuracy,
                        .test_accuracy = accuracy,
                        .seconds = 2});
  }
  return outcomes;
}

TEST(SweepPlan, HasEverySettingWithEverySeed) {
  const SweepPlan plan =
      plan_of({axis_of("lr=0.05,0.1"), axis_of("--augment=flip,crop-flip")}, seeds_of("1,2"));
  ASSERT_EQ(plan.settings.size(), 4U);
  ASSERT_EQ(plan.runs.size(), 8U);
  EXPECT_EQ(plan.runs[0].folder, "lr=0.05,augment=flip,seed=1");
  EXPECT_EQ(plan.runs[1].folder, "lr=0.05,augment=crop-flip,seed=1");
  EXPECT_EQ(plan.runs[7].folder, "lr=0.1,augment=crop-flip,seed=2");
  EXPECT_EQ(name_of(plan, plan.runs[7]), "lr 0.1, augment crop-flip, seed 2");
  EXPECT_EQ(plan_of({}, seeds_of("3")).runs.front().folder, "seed=3");
}

TEST(SweepPlan, TakesValuesWithCommasBehindSemicolons) {
  EXPECT_EQ(axis_of("no-decay=none;norm,bias").values, (Texts{"none", "norm,bias"}));
}

TEST(SweepPlan, NamesFoldersApartWhateverTheValues) {
  const std::string longer(200, 'x');
  const SweepPlan plan = plan_of({{"init", {"a/b", "a_b", "a b", longer, longer + "y"}}}, {"1"});
  EXPECT_EQ(plan.runs[0].folder, "init=a_b,seed=1");
  EXPECT_EQ(plan.runs[1].folder, "init=a_b,seed=1,2");
  EXPECT_EQ(plan.runs[2].folder, "init=a_b,seed=1,3");
  EXPECT_EQ(plan.runs[3].folder, "setting=4,seed=1");
  EXPECT_EQ(plan.runs[4].folder, "setting=5,seed=1");
}

TEST(SweepPlan, ReadsSeeds) {
  EXPECT_EQ(seeds_of("1,2,18446744073709551615"), (Texts{"1", "2", "18446744073709551615"}));
  EXPECT_EQ(seeds_of("7..9"), (Texts{"7", "8", "9"}));
  EXPECT_EQ(seeds_of("18446744073709551615..18446744073709551615").size(), 1U);
}

TEST(SweepPlan, RefusesWhatIsNoSuchThing) {
  for (const char* text :
       {"", "1,,2", "1,a", "-1", "1.5", "2..1", "1..", "1,18446744073709551616"}) {
    EXPECT_NE(error_of([&] { seeds_of(text); }).find("write 1,2,3 or 1..5"), std::string::npos)
        << text;
  }
  EXPECT_EQ(error_of([] { seeds_of("1,2,01"); }), "--seeds has 1 twice; name each once");
  for (const char* text : {"", "lr", "=1", "lr=", "lr=1,,2"}) {
    EXPECT_NE(error_of([&] { axis_of(text); }).find("write lr=0.05,0.1"), std::string::npos)
        << text;
  }
  EXPECT_EQ(error_of([] { axis_of("lr=1,2,1"); }), "--sweep lr has 1 twice; name each once");
  EXPECT_EQ(error_of([] {
              plan_of({axis_of("lr=1"), axis_of("lr=2")}, {"1"});
            }),
            "--sweep has lr twice; name each once");
}

TEST(SweepPlan, RefusesAMillionRunsAtOnce) {
  const std::string many = "more than 1000 runs";
  EXPECT_NE(error_of([] { seeds_of("1..1000000"); }).find(many), std::string::npos);
  EXPECT_NE(error_of([] { seeds_of("0..18446744073709551615"); }).find(many), std::string::npos);
  EXPECT_NE(error_of([] { plan_of({}, seeds_of("1..1001")); }).find(many), std::string::npos);
  Axis ten{"a", {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}};
  std::vector<Axis> axes;
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) axes.push_back({key, ten.values});
  EXPECT_NE(error_of([&] { plan_of(axes, {"1"}); }).find(many), std::string::npos);
  axes.resize(3);
  EXPECT_EQ(plan_of(axes, {"1"}).runs.size(), 1000U);
}

TEST(StudentT, HasTheQuantilesOfTables) {
  // Percentiles as printed in Abramowitz and Stegun, table 26.10.
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.706, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.303, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 4), 2.776, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.995, 10), 3.169, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.95, 30), 1.697, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 1e6), 1.95996, 1e-4);  // the normal distribution's
  EXPECT_NEAR(student_t_quantile(0.5, 3), 0, 1e-9);
  // With one and two degrees the quantiles have formulas.
  EXPECT_NEAR(student_t_quantile(0.9, 1), std::tan(M_PI * 0.4), 1e-9);
  EXPECT_NEAR(student_t_quantile(0.9, 2), 0.8 * std::sqrt(2 / (4 * 0.9 * 0.1)), 1e-9);
}

TEST(StudentT, ComparesMeansAsWelchDid) {
  // a = 1..5 and b = 2, 4, 6, 8, 10: t = -1.8974, 5.8824 degrees of freedom.
  const Spread a = spread_of(std::vector<double>{1, 2, 3, 4, 5});
  const Spread b = spread_of(std::vector<double>{2, 4, 6, 8, 10});
  EXPECT_DOUBLE_EQ(a.mean, 3);
  EXPECT_DOUBLE_EQ(a.deviation, std::sqrt(2.5));
  const Interval interval = difference_of(a, b, 0.95);
  EXPECT_NEAR((interval.low + interval.high) / 2, -3, 1e-12);
  const double half = student_t_quantile(0.975, 5.882352941) * std::sqrt(2.5);
  EXPECT_NEAR((interval.high - interval.low) / 2, half, 1e-6);
  EXPECT_TRUE(interval.has_zero());
  EXPECT_FALSE(difference_of(a, b, 0.5).has_zero());
}

TEST(SweepResults, TellsWhichSettingsDiffer) {
  const SweepPlan plan = plan_of({axis_of("lr=0.1,0.2,0.3")}, seeds_of("1,2,3"));
  // By seed: the first is clearly worse, the last is as good as the second.
  const Outcomes outcomes = done({0.50, 0.80, 0.81, 0.51, 0.82, 0.79, 0.49, 0.81, 0.80});
  const Figure figure = figure_of(outcomes);
  EXPECT_EQ(ranking(plan, outcomes, figure), (std::vector<std::size_t>{1, 2, 0}));
  const std::vector<Comparison> all = comparisons(plan, outcomes, figure);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].verdict, Verdict::equal);
  EXPECT_EQ(all[1].verdict, Verdict::worse);
  EXPECT_NEAR(all[1].behind, 0.31, 1e-9);
  EXPECT_TRUE(in_words(plan, figure, 1, all[0])
                  .starts_with("lr 0.2 and lr 0.3 do not differ: their means are"))
      << in_words(plan, figure, 1, all[0]);
  EXPECT_TRUE(
      in_words(plan, figure, 1, all[1]).starts_with("lr 0.2 is better than lr 0.1 by 31.00 % ("))
      << in_words(plan, figure, 1, all[1]);
}

TEST(SweepResults, ClaimNoIntervalWhereNoSeedMakesADifference) {
  const SweepPlan plan = plan_of({axis_of("lr=0.1,0.2,0.3")}, seeds_of("1,2"));
  const Outcomes outcomes = done({0.1, 0.1, 0.05, 0.1, 0.1, 0.05});
  const Figure figure = figure_of(outcomes);
  const std::vector<Comparison> all = comparisons(plan, outcomes, figure);
  ASSERT_EQ(all.size(), 2U);
  for (const Comparison& one : all) {
    EXPECT_EQ(one.verdict, Verdict::unspread);
    EXPECT_EQ(in_words(plan, figure, 0, one).find("interval"), std::string::npos);
  }
  EXPECT_NE(in_words(plan, figure, 0, all[0]).find("came out the same"), std::string::npos);
  EXPECT_NE(in_words(plan, figure, 0, all[1]).find("lr 0.1 is 5.00 % ahead of lr 0.3"),
            std::string::npos);
  const auto json = to_json(plan, outcomes, {});
  for (const auto& one : json.at("comparisons")) {
    EXPECT_TRUE(one.at("differ").is_null());
    EXPECT_FALSE(one.contains("interval"));
  }
  EXPECT_EQ(answer(plan, outcomes, figure),
            "none is best: lr 0.1 and lr 0.2 have the same mean, 10.00 %");
  EXPECT_NE(sweep_page(plan, outcomes, Curves(6), "").find("none is best: "), std::string::npos);
}

TEST(SweepResults, OfOneSeedHaveNoWinnerWhereMeansAreTheSame) {
  const SweepPlan plan = plan_of({axis_of("lr=0.1,0.2")}, seeds_of("1"));
  const Outcomes outcomes = done({0.1, 0.1});
  const Figure figure = figure_of(outcomes);
  const std::string words = in_words(plan, figure, 0, comparisons(plan, outcomes, figure).at(0));
  EXPECT_EQ(words.find("ahead"), std::string::npos) << words;
  EXPECT_NE(words.find("lr 0.1 and lr 0.2 have the same mean; whether other seeds"),
            std::string::npos)
      << words;
}

TEST(SweepResults, SayOfTheBestWhatDoesNotDifferFromIt) {
  const SweepPlan plan = plan_of({axis_of("lr=0.1,0.2,0.3")}, seeds_of("1,2,3"));
  const Outcomes outcomes = done({0.50, 0.80, 0.81, 0.51, 0.82, 0.79, 0.49, 0.81, 0.80});
  EXPECT_EQ(answer(plan, outcomes, figure_of(outcomes)),
            "lr 0.2: 81.00 % ± 1.00 % (3 seeds), from which 1 of 2 others does not differ");
  const Outcomes alike = done({0.80, 0.80, 0.81, 0.81, 0.82, 0.79, 0.79, 0.81, 0.80});
  EXPECT_EQ(answer(plan, alike, figure_of(alike)).substr(0, 6), "lr 0.2");
  EXPECT_NE(answer(plan, alike, figure_of(alike)).find("2 of 2 others do not differ"),
            std::string::npos);
  EXPECT_EQ(answer(plan, Outcomes(9), figure_of(outcomes)), "");
}

TEST(SweepResults, AsksForMoreOfTwentySettingsThanOfTwo) {
  // The same two settings differ by themselves, but not as the extremes of many.
  const std::vector<double> best{0.80, 0.82, 0.81}, other{0.77, 0.78, 0.79};
  const auto verdict = [&](int settings) {
    Axis axis{"lr", {}};
    for (int i = 0; i < settings; ++i) axis.values.push_back(std::to_string(i));
    const SweepPlan plan = plan_of({axis}, seeds_of("1,2,3"));
    std::vector<double> accuracies;
    for (std::size_t seed = 0; seed < 3; ++seed) {
      for (int i = 0; i < settings; ++i) {
        accuracies.push_back(i == 0 ? best[seed] : i == 1 ? other[seed] : 0.1 + 0.001 * i);
      }
    }
    return comparisons(plan, done(accuracies), figure_of(done(accuracies))).front().verdict;
  };
  EXPECT_EQ(verdict(2), Verdict::worse);
  EXPECT_EQ(verdict(20), Verdict::equal);
}

TEST(SweepResults, KnowsNothingOfSingleRuns) {
  const SweepPlan plan = plan_of({axis_of("lr=0.1,0.2")}, {"1"});
  const Outcomes outcomes = done({0.5, 0.9});
  const auto all = comparisons(plan, outcomes, figure_of(outcomes));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].verdict, Verdict::unknown);
  EXPECT_NE(in_words(plan, figure_of(outcomes), 1, all[0]).find("--seeds two or more"),
            std::string::npos);
}

TEST(SweepResults, GoByTheLossWhereNoAccuracyIsMeasured) {
  const SweepPlan plan = plan_of({axis_of("lr=0.1,0.2")}, {"1", "2"});
  Outcomes outcomes = done({0.5, 0.9, 0.51, 0.91});
  for (Outcome& outcome : outcomes) outcome.test_accuracy = NAN;
  const Figure figure = figure_of(outcomes);
  EXPECT_STREQ(figure.name, "test loss");
  EXPECT_EQ(ranking(plan, outcomes, figure), (std::vector<std::size_t>{1, 0}));
  const auto all = comparisons(plan, outcomes, figure);
  EXPECT_NEAR(all[0].behind, 0.4, 1e-9);
  EXPECT_GT(all[0].interval.low, 0);
}

TEST(SweepResults, LeaveFailedAndStoppedRunsOut) {
  const SweepPlan plan = plan_of({axis_of("lr=0.1,9")}, {"1"});
  Outcomes outcomes = done({0.5, 0.9});
  outcomes[1].status = Status::failed;
  outcomes[1].exit_code = 1;
  outcomes[1].error = "the loss is no number";
  const std::string text = summary(plan, outcomes);
  EXPECT_NE(text.find("lr 9, seed 1 failed with code 1: the loss is no number"), std::string::npos);
  EXPECT_TRUE(comparisons(plan, outcomes, figure_of(outcomes)).empty());
  outcomes[1].status = Status::waiting;
  EXPECT_NE(summary(plan, outcomes).find("1 of 2 runs are left to do"), std::string::npos);
}

TEST(SweepResults, AreReadAsTheyWereWritten) {
  const SweepPlan plan = plan_of({axis_of("lr=0.1,0.2")}, {"1"});
  Outcomes outcomes = done({0.5, 0.9});
  outcomes[1].status = Status::failed;
  outcomes[1].test_accuracy = NAN;
  outcomes[1].exit_code = 137;
  outcomes[1].error = "killed";
  const FormerSweep former = former_sweep("s.json", to_json(plan, outcomes, {"--epochs=1"}).dump());
  EXPECT_EQ(former.flags, (Texts{"--epochs=1"}));
  ASSERT_EQ(former.runs.size(), 2U);
  EXPECT_EQ(former.runs[0].first, "lr=0.1,seed=1");
  EXPECT_EQ(former.runs[0].second.status, Status::done);
  EXPECT_EQ(former.runs[0].second.test_accuracy, 0.5);
  EXPECT_EQ(former.runs[1].second.status, Status::failed);
  EXPECT_EQ(former.runs[1].second.exit_code, 137);
  EXPECT_TRUE(std::isnan(former.runs[1].second.test_accuracy));
  for (const char* text : {"", "{}", "[]", R"({"kind":"ringlet sweep"})",
                           R"({"kind":"ringlet sweep","flags":[1],"runs":[]})",
                           R"({"kind":"ringlet sweep","flags":[],"runs":[{}]})"}) {
    EXPECT_THROW(former_sweep("s.json", text), FileError) << text;
  }
}

TEST(SweepPage, ShowsSettingsAndEscapesTheirNames) {
  const SweepPlan plan = plan_of({{"data", {"<b>", "c"}}}, {"1", "2"});
  const Outcomes outcomes = done({0.5, 0.9, 0.6, 0.8});
  Curves curves(4);
  for (std::size_t i = 0; i < 4; ++i) {
    for (int epoch = 1; epoch <= 3; ++epoch) {
      train::EpochMetrics metrics;
      metrics.epoch = epoch;
      metrics.test_accuracy = outcomes[i].test_accuracy - 0.1 / epoch;
      curves[i].push_back(metrics);
    }
  }
  const std::string page = sweep_page(plan, outcomes, curves, "a sweep");
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  EXPECT_NE(page.find("<div class=\"grid\">\n<figure class=\"plot\""), std::string::npos);
  EXPECT_NE(page.find("<td class=\"text why\">done</td>"), std::string::npos);
  EXPECT_NE(page.find("data c: 85.00 % ± 7.07 % (2 seeds)"), std::string::npos);
  for (const char* id : {"id=\"verdicts\"", "id=\"settings\"", "id=\"runs\"", "id=\"epochs\""}) {
    EXPECT_NE(page.find(id), std::string::npos) << id;
  }
}

}  // namespace
}  // namespace ringlet::app::sweep
