// A pipeline's steps read from a trace: a small file by hand, and what a simulation says written as
// a run would write it. And traces that are none of a pipeline.
#include "app/report/traced_pipeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "app/report/pipeline_page.h"
#include "base/files/file_error.h"
#include "tests/support/files.h"
#include "train/pipeline/schedules.h"
#include "train/telemetry/trace_writer.h"

namespace ringlet::app::report {
namespace {

using train::Simulation;
using train::TimelineSpan;
using Kind = TimelineSpan::Kind;

std::string event(const char* name, double begin_us, double duration_us, int rank,
                  const char* category = "pipeline") {
  return fmt::format(
      R"({{"name":"{}","cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":1,"args":{{}}}})", name,
      category, begin_us, duration_us, rank);
}

std::string trace_of(const std::vector<std::string>& events) {
  return fmt::format(R"({{"traceEvents":[{}]}})", fmt::join(events, ",\n"));
}

/// Two stages, one micro-batch, naive. Stage 0 waits in its Move until stage 1 has come, and is
/// late by 2 us behind F0.
std::vector<std::string> small() {
  return {event("data", 995, 5, 0, "phase"),
          event("F0", 1000, 10, 0),
          event("conv1", 1001, 4, 0, "layer"),
          event("send a0 to 1", 1012, 8, 0),
          event("receive g0 from 1", 1020, 60, 0),
          event("B0", 1080, 20, 0),
          event("sync", 1100, 5, 0),
          event("receive a0 from 0", 1000, 20, 1),
          event("F0", 1020, 10, 1),
          event("B0", 1030, 40, 1),
          event("send g0 to 0", 1070, 10, 1),
          event("sync", 1080, 15, 1)};
}

TEST(TracedPipeline, IsReadFromASmallFile) {
  const TracedPipeline run = parse_pipeline(trace_of(small()), "t.json");
  ASSERT_EQ(run.stages(), 2);
  EXPECT_EQ(run.micro_batches, 1);
  EXPECT_EQ(run.replicas, 1);
  EXPECT_EQ(run.ranks, (std::vector<int>{0, 1}));
  ASSERT_EQ(run.steps.size(), 1U);
  const Simulation& step = run.steps.front();
  struct Told {
    int stage;
    Kind kind;
    double begin, end;
    int peer;
  };
  const Told wanted[] = {{0, Kind::forward, 0, 10, -1},    {0, Kind::wait, 10, 12, -1},
                         {0, Kind::activation, 12, 20, 1}, {0, Kind::wait, 20, 70, -1},
                         {0, Kind::gradient, 70, 80, 1},   {0, Kind::backward, 80, 100, -1},
                         {0, Kind::sync, 100, 105, -1},    {1, Kind::wait, 0, 12, -1},
                         {1, Kind::activation, 12, 20, 0}, {1, Kind::forward, 20, 30, -1},
                         {1, Kind::backward, 30, 70, -1},  {1, Kind::gradient, 70, 80, 0},
                         {1, Kind::sync, 80, 95, -1},      {1, Kind::wait, 95, 105, -1}};
  ASSERT_EQ(step.timeline.size(), std::size(wanted));
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    const TimelineSpan& span = step.timeline[i];
    EXPECT_EQ(span.stage, wanted[i].stage) << i;
    EXPECT_EQ(span.kind, wanted[i].kind) << i;
    EXPECT_NEAR(1e6 * span.begin, wanted[i].begin, 1e-6) << i;
    EXPECT_NEAR(1e6 * span.end, wanted[i].end, 1e-6) << i;
    EXPECT_EQ(span.peer, wanted[i].peer) << i;
  }
  EXPECT_NEAR(1e6 * step.seconds, 105, 1e-6);
  EXPECT_NEAR(step.bubble, 1 - 80. / (2 * 105), 1e-9);
  EXPECT_NEAR(step.speedup, 100. / 105, 1e-9);
  EXPECT_NEAR(1e6 * step.stages[0].waiting, 52, 1e-6);
  EXPECT_NEAR(1e6 * step.stages[1].moving, 18, 1e-6);
  EXPECT_EQ(step.stages[1].peak_held, 1);
}

/// The spans of a stage's program as a run would trace them: a Move begins where the action before
/// it ends.
void trace(const train::Program& program, const Simulation& step, int stage, double from,
           Tracer& tracer) {
  double now = 0;
  const auto end_of = [&](Kind kind, int micro_batch, int peer = TimelineSpan::kNone) {
    for (const TimelineSpan& span : step.timeline) {
      if (span.stage == stage && span.kind == kind && span.micro_batch == micro_batch &&
          span.peer == peer) {
        return span.end;
      }
    }
    return now;
  };
  for (const train::Action& action : program) {
    double end = now;
    const auto note = [&](const std::optional<train::Message>& message) {
      if (!message) return;
      const bool activation = message->payload == train::Payload::activation;
      end = std::max(end, end_of(activation ? Kind::activation : Kind::gradient,
                                 message->micro_batch, message->peer));
    };
    if (const auto* forward = std::get_if<train::Forward>(&action)) {
      end = end_of(Kind::forward, forward->micro_batch);
    } else if (const auto* backward = std::get_if<train::Backward>(&action)) {
      end = end_of(Kind::backward, backward->micro_batch);
    } else if (const auto* move = std::get_if<train::Move>(&action)) {
      note(move->out);
      note(move->in);
    } else {
      end = end_of(Kind::sync, TimelineSpan::kNone);
    }
    tracer.add(text_of(action), train::kTracedActions, std::llround(1e9 * (from + now)),
               std::llround(1e9 * (from + end)));
    now = end;
  }
}

TEST(TracedPipeline, SaysOfARunWhatTheSimulationSaid) {
  const testing::TemporaryDirectory folder;
  using train::PipelineSchedule;
  for (const auto schedule :
       {PipelineSchedule::naive, PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    const train::Pipeline pipeline = train::make_pipeline(schedule, 3, 4);
    const Simulation step = simulate(pipeline, {.forward = {.01, .02, .015},
                                                .backward = {.02, .03, .04},
                                                .activation = {.001, .002},
                                                .gradient = {.002, .001},
                                                .sync = {.003, .001, .002}});
    train::TraceWriter writer;
    constexpr int kReplicas = 2, kSteps = 4;
    for (int rank = 0; rank < 3 * kReplicas; ++rank) {
      Tracer tracer;
      for (int i = 0; i < kSteps; ++i) {
        const int stage = rank / kReplicas;
        trace(pipeline.programs[static_cast<std::size_t>(stage)], step, stage, 10 + i, tracer);
      }
      writer.add(rank, 1, "compute", std::move(tracer));
    }
    writer.write(folder / "t.json");
    const TracedPipeline run = read_pipeline(folder / "t.json");
    EXPECT_EQ(run.replicas, kReplicas);
    EXPECT_EQ(run.micro_batches, 4);
    EXPECT_EQ(run.ranks, (std::vector<int>{0, 2, 4}));
    ASSERT_EQ(run.steps.size(), std::size_t{kSteps});
    EXPECT_GE(run.typical_step(), 2);
    for (const Simulation& read : run.steps) {
      EXPECT_NEAR(read.seconds, step.seconds, 1e-8) << name_of(schedule);
      EXPECT_NEAR(read.bubble, step.bubble, 1e-6);
      EXPECT_NEAR(read.speedup, step.speedup, 1e-6);
      for (std::size_t stage = 0; stage < 3; ++stage) {
        EXPECT_NEAR(read.stages[stage].busy, step.stages[stage].busy, 1e-7);
        EXPECT_NEAR(read.stages[stage].moving, step.stages[stage].moving, 1e-7);
        EXPECT_NEAR(read.stages[stage].waiting, step.stages[stage].waiting, 1e-7);
        EXPECT_EQ(read.stages[stage].peak_held, step.stages[stage].peak_held);
        EXPECT_EQ(held_over_time(read, static_cast<int>(stage)).back().passes, 0);
      }
    }
  }
}

TEST(TracedPipeline, IsOfOneStageToo) {
  const TracedPipeline run =
      parse_pipeline(trace_of({event("F0", 0, 10, 0), event("B0", 10, 20, 0),
                               event("sync", 30, 2, 0), event("F0", 40, 10, 0)}),
                     "t.json");
  EXPECT_EQ(run.stages(), 1);
  ASSERT_EQ(run.steps.size(), 1U);  // the last one is not whole
  EXPECT_NEAR(run.steps[0].bubble, 1 - 30. / 32, 1e-9);
}

TEST(TracedPipeline, HasAPage) {
  const TracedPipeline run = parse_pipeline(trace_of(small()), "t.json");
  EXPECT_EQ(in_words(run, 0),
            "step 0 of 1, 1 micro-batch: 0.105 ms, bubble 62 %, 0.95x of one device; the middle of "
            "all steps: 0.105 ms, bubble 62 %");
  EXPECT_EQ(traced_table(run, 0).rows[1],
            (std::vector<std::string>{"1", "1", "0.01 / 0.04", "47.6 %", "17.1 %", "14.3 %",
                                      "21.0 %", "1 of 1"}));
  const std::string page = traced_page(run, 0, "a<b>.json");
  EXPECT_NE(page.find("Step 0 of 1 in a&lt;b&gt;.json."), std::string::npos);
  EXPECT_NE(page.find("Stage 0 waited most, 49.5 % of the step."), std::string::npos);
  EXPECT_NE(page.find("stage 1: forward of micro-batch 0"), std::string::npos);
}

std::string refusal_of(const std::vector<std::string>& events) {
  try {
    parse_pipeline(trace_of(events), "t.json");
  } catch (const FileError& error) {
    return error.what();
  }
  return "read";
}

TEST(TracedPipeline, RefusesWhatIsNone) {
  EXPECT_EQ(refusal_of({event("F0", 0, 1, 0, "phase")}),
            "t.json: no step of a pipeline is in it; trace a run that is cut into stages");
  EXPECT_EQ(refusal_of({event("F0", 0, 1, 0)}),
            "t.json: no step of a pipeline is whole in it; trace a longer run");
  EXPECT_EQ(refusal_of({event("G0", 0, 1, 0)}), "t.json: 'G0' is no action of a pipeline");
  std::vector<std::string> half = small();
  half.erase(half.begin() + 7, half.end());
  EXPECT_EQ(refusal_of(half),
            "t.json: stage 1 is not in it; put the traces of all processes together with ringlet "
            "trace merge");
  EXPECT_EQ(refusal_of({event("send a0 to 16000000", 0, 1, 0), event("sync", 1, 1, 0)}),
            "t.json: stage 0 is not in it; put the traces of all processes together with ringlet "
            "trace merge");
  std::vector<std::string> other = small();
  other[10] = event("send g1 to 0", 1070, 10, 1);
  EXPECT_EQ(refusal_of(other),
            "t.json: stage 0 receives gradient 0 from stage 1 in step 0, and stage 1 has no such "
            "message");
}

}  // namespace
}  // namespace ringlet::app::report
