// What an epoch's stages did, from what each rank says of its thread.
#include "train/reports/stages_report.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ringlet::train {
namespace {

TEST(StagesReport, SaysTheBubbleAndWhoWaitedForWhom) {
  const std::vector<StageSeconds> ranks{{.all = 10, .busy = 6, .data = 1, .behind = 1, .sums = 1},
                                        {.all = 10, .busy = 8, .data = 1, .sums = 1},
                                        {.all = 9, .busy = 4, .before = 5, .sums = 1},
                                        {.all = 11, .busy = 2, .before = 3, .sums = 3}};
  const StagesReport report = report_of(ranks, 2, .25);
  EXPECT_DOUBLE_EQ(report.bubble, .5);
  EXPECT_EQ(report.predicted, .25);
  EXPECT_EQ(report.stage, 1);
  EXPECT_DOUBLE_EQ(report.waited, .6);
  EXPECT_EQ(report.reason, "stage 0");
  EXPECT_DOUBLE_EQ(report.of_reason, .4);
  ASSERT_EQ(report.stages.size(), 2u);
  EXPECT_EQ(report.stages[0], (StageShares{.busy = .7, .data = .1, .behind = .05, .sums = .1}));
  EXPECT_DOUBLE_EQ(report.stages[1].before, .4);
  EXPECT_DOUBLE_EQ(report.stages[1].sums, .2);
  EXPECT_EQ(in_words(report),
            "bubble 50 % (predicted 25 %), stage 1 waited most: 60 % of the time, 40 % for stage "
            "0");
}

TEST(StagesReport, SaysWhatAStepTookBesideTheForecast) {
  StagesReport report{.bubble = .5, .predicted = .25, .step_seconds = .0573, .reason = "sums"};
  EXPECT_EQ(in_words(report).rfind("step 57.3 ms, bubble 50 % (predicted 25 %), ", 0), 0U);
  report.predicted_step_seconds = .0569;
  EXPECT_EQ(in_words(report).rfind("step 57.3 ms (predicted 56.9 ms), bubble 50 % ", 0), 0U);
}

TEST(StagesReport, NamesWhatIsNoStage) {
  const StagesReport first =
      report_of({{.all = 4, .busy = 1, .data = 3}, {.all = 4, .busy = 4}}, 2, 0);
  EXPECT_EQ(first.stage, 0);
  EXPECT_EQ(first.reason, "samples");
  const StagesReport behind = report_of(
      {{.all = 4, .busy = 1, .behind = 2}, {.all = 4, .busy = 4}, {.all = 4, .busy = 3, .sums = 1}},
      3, 0);
  EXPECT_EQ(behind.stage, 0);
  EXPECT_EQ(behind.reason, "stage 1");
  EXPECT_THROW(report_of({{.all = 4}, {.all = 4}, {.all = 4}}, 2, 0), ContractError);
}

TEST(StagesReport, ComesOutOfItsText) {
  const StageSeconds seconds{
      .all = 3, .busy = 1. / 3, .data = 1e-9, .before = 12.5, .behind = 0, .sums = 2e6 / 7};
  EXPECT_EQ(stage_seconds_of(to_text(seconds)), seconds);
  EXPECT_THROW(stage_seconds_of("1 2 3 4 5"), ContractError);
}

}  // namespace
}  // namespace ringlet::train
