// The drawing of a pipeline's step: what is held when, what has room, and that each span is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/report/pipeline_page.h"
#include "train/pipeline/schedules.h"

namespace ringlet::app::report {
namespace {

train::Simulation played(train::PipelineSchedule schedule, int stages, int micro_batches) {
  const auto p = static_cast<std::size_t>(stages);
  return simulate(train::make_pipeline(schedule, stages, micro_batches),
                  {.forward = std::vector<double>(p, 1),
                   .backward = std::vector<double>(p, 2),
                   .activation = std::vector<double>(p - 1, .125),
                   .gradient = std::vector<double>(p - 1, .125),
                   .sync = std::vector<double>(p, .5)});
}

int times_in(const std::string& text, const std::string& word) {
  int count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

int most_of(const std::vector<HeldFrom>& held) {
  int most = 0;
  for (const HeldFrom& from : held) most = std::max(most, from.passes);
  return most;
}

TEST(PipelineTimeline, HoldsWhatTheScheduleHolds) {
  using train::PipelineSchedule;
  for (const auto schedule :
       {PipelineSchedule::naive, PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    for (int p = 1; p <= 5; ++p) {
      for (int m = 1; m <= 6; ++m) {
        const train::Simulation step = played(schedule, p, m);
        for (int stage = 0; stage < p; ++stage) {
          const std::vector<HeldFrom> held = held_over_time(step, stage);
          EXPECT_EQ(most_of(held), step.stages[static_cast<std::size_t>(stage)].peak_held)
              << name_of(schedule) << " " << p << " " << m << " " << stage;
          EXPECT_EQ(held.back().passes, 0);
        }
      }
    }
  }
  // F0 until B0 is done and its gradient has gone; stage 0 sends none.
  const train::Simulation step = played(PipelineSchedule::naive, 2, 1);
  EXPECT_EQ(held_over_time(step, 1), (std::vector<HeldFrom>{{1.125, 1}, {4.25, 0}}));
  EXPECT_EQ(held_over_time(step, 0), (std::vector<HeldFrom>{{0, 1}, {6.25, 0}}));
}

TEST(PipelineTimeline, DrawsEachSpanAndEachMessage) {
  const PipelineTimeline timeline{.layers = {"conv1 .. <b>", "fc"},
                                  .step = played(train::PipelineSchedule::one_f_one_b, 2, 4),
                                  .title = "two & two"};
  const std::string svg = timeline_of(timeline);
  EXPECT_EQ(times_in(svg, "<rect class=\"f\""), 8);
  EXPECT_EQ(times_in(svg, "<rect class=\"b\""), 8);
  EXPECT_EQ(times_in(svg, "<rect class=\"s\""), 2);
  EXPECT_EQ(times_in(svg, "class=\"arrow down\""), 4);
  EXPECT_EQ(times_in(svg, "class=\"arrow up\""), 4);
  EXPECT_EQ(times_in(svg, "<text class=\"n fn\""), 8);
  EXPECT_EQ(times_in(svg, "<path class=\"held\""), 2);
  EXPECT_EQ(times_in(svg, "stage 1: activation 3 from stage 0"), 1);
  EXPECT_EQ(times_in(svg, "stage 0: gradient 3 from stage 1"), 1);
  EXPECT_EQ(times_in(svg, "conv1 .. &lt;b&gt;"), 1);
  EXPECT_EQ(times_in(svg, "two &amp; two"), 1);
}

TEST(PipelineTimeline, LeavesOutWhatHasNoRoom) {
  const std::string svg =
      timeline_of({.step = played(train::PipelineSchedule::one_f_one_b, 8, 200)});
  EXPECT_EQ(times_in(svg, "<rect class=\"f\""), 8 * 200);
  EXPECT_EQ(times_in(svg, "class=\"arrow"), 0);
  EXPECT_EQ(times_in(svg, "<text class=\"n "), 0);
}

TEST(PipelineTimeline, HasAStillThatNeedsNoPage) {
  const std::string still = pipeline_still(
      {.step = played(train::PipelineSchedule::gpipe, 3, 2), .in_seconds = false, .title = "T"});
  EXPECT_EQ(still.find("<svg xmlns="), 0U);
  EXPECT_NE(still.find(".still { --paper"), std::string::npos);
  EXPECT_NE(still.find("percent of the step"), std::string::npos);
  EXPECT_EQ(times_in(still, "http"), 1);  // the name of SVG alone
}

}  // namespace
}  // namespace ringlet::app::report
