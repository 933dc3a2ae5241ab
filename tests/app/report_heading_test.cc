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

}  // namespace
}  // namespace ringlet::app::report
