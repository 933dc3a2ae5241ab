// What a report begins with: which run is best, numbers as one reads them, and what is missing.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "app/report/axis.h"
#include "app/report/sections.h"
#include "train/telemetry/metrics_reader.h"

namespace ringlet::app::report {
namespace {

RunFolder run_of(const std::string& name, double accuracy) {
  RunFolder run;
  run.name = name;
  run.finished = true;
  train::EpochMetrics epoch;
  epoch.epoch = 1;
  epoch.train_loss = epoch.test_loss = 1.6e-5;
  epoch.test_accuracy = accuracy;
  epoch.seconds = 2;
  run.metrics.epochs = {epoch};
  return run;
}

/// With the spaces that no line ends at as spaces.
std::string answer(const std::vector<RunFolder>& runs) {
  std::string text = answer_of(runs);
  for (auto at = text.find("\u00a0"); at != text.npos; at = text.find("\u00a0")) {
    text.replace(at, std::string("\u00a0").size(), " ");
  }
  return text.substr(std::string("a model on unknown data: ").size());
}

TEST(ReportAnswer, NamesTheBestRunWithTheDigitsThatMakeIt) {
  EXPECT_EQ(answer({run_of("a", 0.91), run_of("b", 0.93)}),
            "b is best, 93.0 % in 2.0 s; a, 91.0 % in 2.0 s");
  EXPECT_EQ(answer({run_of("a", 0.9128), run_of("b", 0.9132)}),
            "b is best, 91.32 % in 2.0 s; a, 91.28 % in 2.0 s");
}

TEST(ReportAnswer, CallsNoneOfEqualRunsTheBest) {
  EXPECT_EQ(answer({run_of("a", 0.9), run_of("b", 0.93), run_of("c", 0.93)}),
            "b and c are best, 93.0 %; a, 90.0 % in 2.0 s");
  EXPECT_EQ(answer({run_of("a", 0.93), run_of("b", 0.9), run_of("c", 0.93)}),
            "a and c are best, 93.0 %");
  EXPECT_EQ(answer({run_of("a", 0.93), run_of("b", 0.93)}), "both runs come to 93.0 %");
  EXPECT_EQ(answer({run_of("a", 0.93), run_of("b", 0.93), run_of("c", 0.93)}),
            "all 3 runs come to 93.0 %");
}

TEST(ReportNumbers, AreNotRoundedToWhatTheyAreNot) {
  EXPECT_EQ(share_text(0.9996, 1), "99.96");
  EXPECT_EQ(share_text(0.9996, 2), "99.96");
  EXPECT_EQ(share_text(0.913, 1), "91.3");
  EXPECT_EQ(share_text(1, 1), "100.0");
  EXPECT_EQ(answer({run_of("a", 0.99999)}), "99.999 % in 2.0 s");
  EXPECT_EQ(loss_text(0.12345), "0.1235");
  EXPECT_EQ(loss_text(1.6e-5), "1.6e-05");
  EXPECT_EQ(loss_text(1e300), "1e+300");
  EXPECT_EQ(loss_text(0), "0.0000");
  EXPECT_EQ(loss_text(NAN), "\u2013");
}

TEST(ReportHeading, SaysWhereTheLossIsNoNumber) {
  RunFolder run = run_of("a", NAN);
  for (int i = 1; i <= 1200; ++i) {
    run.metrics.steps.step.push_back(i);
    run.metrics.steps.loss.push_back(i < 1100 ? 1 : NAN);
  }
  const std::string html = heading({run});
  EXPECT_NE(html.find("<p class=\"warning\">The loss is no number in 101 of 1,200 steps, first in "
                      "step 1,100.</p>"),
            html.npos)
      << html;
  EXPECT_NE(html.find("1.6e-05"), html.npos);
  run.metrics.steps.loss.assign(1200, 1);
  EXPECT_EQ(heading({run}).str().find("no number"), std::string::npos);
  EXPECT_NE(heading({run, run_of("b", 0.5)}).str().find("<td>&ndash;</td><td>&ndash;</td>"),
            std::string::npos)
      << "the best accuracy of none";
}

TEST(ReportHeading, HasTheFiguresOfATaskOfOnesOwn) {
  RunFolder run = run_of("a", NAN);
  EXPECT_EQ(answer({run}), "not tested");
  run.metrics = train::parse_metrics(
      R"({"kind":"epoch","epoch":1,"test_loss":1,"test_mean_error":0.75,"seconds":2})"
      "\n"
      R"({"kind":"epoch","epoch":2,"test_loss":1,"test_mean_error":0.5,"seconds":2})"
      "\n",
      "it");
  EXPECT_EQ(answer({run}), "mean error 0.5 in 4.0 s");
  const std::string html = heading({run}).str() + curves_section({run}).str();
  EXPECT_NE(html.find("<dt>Test mean error</dt>"), html.npos) << html;
  EXPECT_EQ(html.find("Test accuracy"), html.npos);
  EXPECT_NE(html.find("id=\"test-mean_error\""), html.npos);
  EXPECT_NE(html.find("data-x=\"1,2\" data-y=\"0.75,0.5\""), html.npos);
  EXPECT_EQ(html.find("id=\"test-accuracy\""), html.npos);
}

TEST(ReportHeading, OfARunThatMayGoOnSaysWhereItIs) {
  RunFolder run = run_of("a", 0.5);
  run.finished = false;
  run.facts = RunFacts(R"({"run":{"planned_steps":500,"epochs":2}})", "it");
  run.metrics.steps.step = {297};
  EXPECT_NE(heading({run}, true).str().find("at step 297 of 500, 1 of 2 epochs done"),
            std::string::npos);
  EXPECT_NE(heading({run}).str().find("stopped after step 297 of 500, 1 of 2 epochs done"),
            std::string::npos);
}

}  // namespace
}  // namespace ringlet::app::report
