// The clock of pipelines: copies, unequal stages, short micro-batches, syncs, what is held, the
// timeline, and how a pipeline that never ends is told.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "train/pipeline/schedules.h"
#include "train/pipeline/simulate.h"

namespace ringlet::train {
namespace {

constexpr double kClose = 1e-12;

/// p equal stages: F takes 1, B as given, and each message `copy`, either way.
PipelineTimes times_of_equal_stages(int stages, double backward, double copy) {
  const auto p = static_cast<std::size_t>(stages);
  return {.forward = std::vector<double>(p, 1),
          .backward = std::vector<double>(p, backward),
          .activation = std::vector<double>(p - 1, copy),
          .gradient = std::vector<double>(p - 1, copy)};
}

double speedup_with_copies(PipelineSchedule schedule, int stages, int micro_batches) {
  return simulate(make_pipeline(schedule, stages, micro_batches),
                  times_of_equal_stages(stages, 2, .05))
      .speedup;
}

TEST(PipelineClock, CopiesOfATwentiethOfAForwardCostLittle) {
  EXPECT_NEAR(speedup_with_copies(PipelineSchedule::one_f_one_b, 2, 8), 1.75, .005);
  EXPECT_NEAR(speedup_with_copies(PipelineSchedule::gpipe, 2, 8), 1.73, .005);
  EXPECT_NEAR(speedup_with_copies(PipelineSchedule::one_f_one_b, 4, 16), 3.27, .005);
  EXPECT_NEAR(speedup_with_copies(PipelineSchedule::gpipe, 4, 16), 3.18, .005);
}

TEST(PipelineClock, ForwardsRunAgainWhereAnotherPassCameBetween) {
  PipelineTimes times = times_of_equal_stages(2, 2, 0);
  times.pass_bytes = {100, 200};
  times.recompute = true;
  times.kept_bytes = {10, 20};
  const Simulation all = simulate(make_pipeline(PipelineSchedule::gpipe, 2, 4), times);
  EXPECT_EQ(all.seconds, (4 + 1) * 1 + (4 + 1) * 3);
  EXPECT_EQ(all.stages[0].again, 4);
  EXPECT_EQ(all.stages[1].again, 4);
  EXPECT_EQ(all.stages[0].busy, 4 * (1 + 1 + 2));
  EXPECT_EQ(all.speedup, 2 * 4 * 3 / 20.0);  // one device runs no forward again
  EXPECT_EQ(all.stages[0].bytes_held, 100 + 3 * 10);
  EXPECT_EQ(all.stages[1].bytes_held, 200 + 3 * 20);

  const Simulation turns = simulate(make_pipeline(PipelineSchedule::one_f_one_b, 2, 4), times);
  EXPECT_EQ(turns.stages[0].again, 4);
  EXPECT_EQ(turns.stages[1].again, 0);  // its backward comes at once
  EXPECT_EQ(turns.stages[0].bytes_held, 100 + 10);
  const Simulation naive = simulate(make_pipeline(PipelineSchedule::naive, 2, 4), times);
  EXPECT_EQ(naive.stages[0].again + naive.stages[1].again, 0);
}

TEST(PipelineClock, AMessageBeginsWhenBothSidesHaveCome) {
  // Stage 1 waits for F0 and its copy; stage 0 then waits for F0, B0 and the copy back.
  const Simulation step =
      simulate(make_pipeline(PipelineSchedule::naive, 2, 1),
               {.forward = {1, 2}, .backward = {4, 8}, .activation = {.5}, .gradient = {.25}});
  EXPECT_EQ(step.seconds, 1 + .5 + 2 + 8 + .25 + 4);
  using Kind = TimelineSpan::Kind;
  constexpr int kNone = TimelineSpan::kNone;
  EXPECT_EQ(step.timeline, (std::vector<TimelineSpan>{{0, Kind::forward, 0, 0, 1},
                                                      {0, Kind::activation, 0, 1, 1.5, 1},
                                                      {0, Kind::wait, kNone, 1.5, 11.5},
                                                      {0, Kind::gradient, 0, 11.5, 11.75, 1},
                                                      {0, Kind::backward, 0, 11.75, 15.75},
                                                      {0, Kind::sync, kNone, 15.75, 15.75},
                                                      {1, Kind::wait, kNone, 0, 1},
                                                      {1, Kind::activation, 0, 1, 1.5, 0},
                                                      {1, Kind::forward, 0, 1.5, 3.5},
                                                      {1, Kind::backward, 0, 3.5, 11.5},
                                                      {1, Kind::gradient, 0, 11.5, 11.75, 0},
                                                      {1, Kind::sync, kNone, 11.75, 11.75},
                                                      {1, Kind::wait, kNone, 11.75, 15.75}}));
  const StageUse& first = step.stages[0];
  EXPECT_EQ(first.busy, 5);
  EXPECT_EQ(first.moving, .75);
  EXPECT_EQ(first.waiting, 10);
  EXPECT_EQ(step.stages[1].waiting, 5);
  EXPECT_EQ(step.bubble, 1 - 15 / (2 * 15.75));
  EXPECT_EQ(step.speedup, 15 / 15.75);
}

// From where all have agreed on a step to where they agree on the next one: stage 1 updates while
// stage 0 is in its forward already.
TEST(PipelineClock, AStepBeginsWithTheUpdateOfTheOneBefore) {
  PipelineTimes times{.forward = {2, 2}, .backward = {4, 4}, .sync = {.5, .25}, .update = {1, 2}};
  const Pipeline pipeline = make_pipeline(PipelineSchedule::naive, 2, 1);
  const Simulation hidden = simulate(pipeline, times);
  EXPECT_EQ(hidden.seconds, 1 + 2 + 2 + 4 + 4 + .5);
  EXPECT_EQ(hidden.stages[1].syncing, 2.25);
  EXPECT_EQ(hidden.stages[1].waiting, hidden.seconds - 6 - 2.25);
  EXPECT_EQ(hidden.speedup, (12 + .75 + 3) / hidden.seconds);
  times.update = {1, 7};
  EXPECT_EQ(simulate(pipeline, times).seconds, 7 + 2 + 4 + 4 + .5);
  times.update = {1};
  EXPECT_THROW(simulate(pipeline, times), ContractError);
}

TEST(PipelineClock, BothMessagesOfAMoveGoAtTheSameTime) {
  Pipeline pair{.schedule = "a pair", .micro_batches = 2};
  pair.programs = {{Move{Message{1, Payload::activation, 1}, Message{1, Payload::gradient, 0}}},
                   {Move{Message{0, Payload::gradient, 0}, Message{0, Payload::activation, 1}}}};
  const Simulation step = simulate(pair, {.activation = {3}, .gradient = {2}});
  EXPECT_EQ(step.seconds, 3);
  EXPECT_EQ(step.stages[0].moving, 3);
  EXPECT_EQ(step.stages[1].moving, 3);
}

TEST(PipelineClock, AMoveMeetsTwoMovesOfItsPeer) {
  Pipeline pair{.schedule = "one and two", .micro_batches = 1};
  const Message out{1, Payload::activation, 0}, in{1, Payload::gradient, 0};
  const Message back{0, Payload::gradient, 0}, to{0, Payload::activation, 0};
  pair.programs = {{Move{out, in}}, {Move{{}, to}, Forward{0}, Move{back, {}}}};
  const Simulation step = simulate(pair, {.forward = {9, 5}, .activation = {3}, .gradient = {2}});
  EXPECT_EQ(step.circle, "");
  EXPECT_EQ(step.seconds, 3 + 5 + 2);
  EXPECT_EQ(step.stages[0].waiting, 5);
  EXPECT_EQ(step.stages[0].moving, 5);
}

TEST(PipelineClock, TheSlowestOfUnequalStagesSetsTheTime) {
  // Once the pipeline is full, each micro-batch takes the time of the slowest stage, here the
  // last: m times F and B of it, and one F and B of the first.
  PipelineTimes times{.forward = {1, 1.3}, .backward = {2, 2.6}};
  for (const int micro_batches : {1, 2, 8, 32}) {
    const Simulation step =
        simulate(make_pipeline(PipelineSchedule::one_f_one_b, 2, micro_batches), times);
    EXPECT_NEAR(step.seconds, 3 + micro_batches * 3.9, 1e-9) << micro_batches;
    EXPECT_NEAR(step.speedup, micro_batches * 6.9 / (3 + micro_batches * 3.9), kClose);
    EXPECT_NEAR(step.stages[1].waiting, 3, 1e-9);
  }
  std::swap(times.forward[0], times.forward[1]);
  std::swap(times.backward[0], times.backward[1]);
  const Simulation step = simulate(make_pipeline(PipelineSchedule::one_f_one_b, 2, 8), times);
  // The first is the slow one. It waits 3 - 1.3 for the first gradient, and 3 - 2.6 for the last.
  EXPECT_NEAR(step.seconds, 8 * 3.9 + 1.7 + .4, 1e-9);
  EXPECT_NEAR(step.stages[0].waiting, 1.7 + .4, 1e-9);
}

TEST(PipelineClock, AShortMicroBatchTakesLess) {
  PipelineTimes times = times_of_equal_stages(2, 2, .5);
  const Pipeline pipeline = make_pipeline(PipelineSchedule::naive, 2, 2);
  const double whole = simulate(pipeline, times).seconds;
  times.scales = {1, .25};
  EXPECT_EQ(whole, 2 * (6 + 1));
  EXPECT_EQ(simulate(pipeline, times).seconds, 1.25 * (6 + 1));
  times.scales = {1, 0};  // an empty one is passed over
  EXPECT_EQ(simulate(pipeline, times).seconds, 6 + 1);
}

TEST(PipelineClock, ALaterStageSumsWhileEarlierOnesCompute) {
  PipelineTimes times = times_of_equal_stages(2, 2, 0);
  times.sync = {1, 2};
  const Pipeline pipeline = make_pipeline(PipelineSchedule::one_f_one_b, 2, 4);
  const Simulation step = simulate(pipeline, times);
  EXPECT_EQ(step.seconds, 15 + 1);  // stage 1 is through at 13, and with its sync at 15
  EXPECT_EQ(step.stages[1].syncing, 2);
  EXPECT_EQ(step.speedup, (24 + 3) / 16.0);
}

TEST(PipelineClock, BytesAreThoseOfThePassesHeld) {
  PipelineTimes times = times_of_equal_stages(3, 2, 0);
  times.pass_bytes = {1000, 100, 10};
  const auto bytes = [&](PipelineSchedule schedule) {
    std::vector<std::int64_t> all;
    for (const StageUse& use : simulate(make_pipeline(schedule, 3, 5), times).stages) {
      all.push_back(use.bytes_held);
    }
    return all;
  };
  EXPECT_EQ(bytes(PipelineSchedule::naive), (std::vector<std::int64_t>{1000, 100, 10}));
  EXPECT_EQ(bytes(PipelineSchedule::gpipe), (std::vector<std::int64_t>{5000, 500, 50}));
  EXPECT_EQ(bytes(PipelineSchedule::one_f_one_b), (std::vector<std::int64_t>{3000, 200, 10}));
}

/// The spans of a stage lie behind each other without a gap, and are as long as its use says.
void expect_spans_fill_the_step(const Simulation& step) {
  for (std::size_t stage = 0; stage < step.stages.size(); ++stage) {
    double now = 0, moving = 0, moved = 0;  // moved: the end of the last message
    for (const TimelineSpan& span : step.timeline) {
      if (span.stage != static_cast<int>(stage)) continue;
      if (span.peer != TimelineSpan::kNone) {  // two messages of a Move may overlap
        moving += std::max(0.0, span.end - std::max(span.begin, moved));
        moved = std::max(moved, span.end);
      }
      EXPECT_LE(span.begin, now + kClose) << "stage " << stage;
      EXPECT_LE(span.begin, span.end);
      now = std::max(now, span.end);
    }
    EXPECT_NEAR(now, step.seconds, 1e-9) << "stage " << stage;
    const StageUse& use = step.stages[stage];
    EXPECT_NEAR(use.moving, moving, 1e-9) << "stage " << stage;
    EXPECT_NEAR(use.busy + use.moving + use.syncing + use.waiting, step.seconds, 1e-9);
  }
}

TEST(PipelineClock, TimelinesHaveEachActionAndNoGap) {
  for (const std::string& name : pipeline_schedule_names()) {
    for (const int stages : {1, 2, 4}) {
      for (const int micro_batches : {1, 3, 8}) {
        SCOPED_TRACE(name + ", " + std::to_string(stages) + ", " + std::to_string(micro_batches));
        PipelineTimes times = times_of_equal_stages(stages, 2, .125);
        times.forward.back() = 1.5;
        times.sync.assign(static_cast<std::size_t>(stages), .5);
        const Simulation step =
            simulate(make_pipeline(parse_pipeline_schedule(name), stages, micro_batches), times);
        expect_spans_fill_the_step(step);
        const auto count = [&](TimelineSpan::Kind kind) {
          return std::count_if(step.timeline.begin(), step.timeline.end(),
                               [&](const TimelineSpan& span) { return span.kind == kind; });
        };
        EXPECT_EQ(count(TimelineSpan::Kind::forward), stages * micro_batches);
        EXPECT_EQ(count(TimelineSpan::Kind::backward), stages * micro_batches);
        EXPECT_EQ(count(TimelineSpan::Kind::activation), 2 * (stages - 1) * micro_batches);
        EXPECT_EQ(count(TimelineSpan::Kind::gradient), 2 * (stages - 1) * micro_batches);
        EXPECT_EQ(count(TimelineSpan::Kind::sync), stages);
      }
    }
  }
}

/// Each Move with two sides as a send and a receive one behind the other.
Pipeline taken_apart(const Pipeline& pipeline) {
  Pipeline apart = pipeline;
  for (Program& program : apart.programs) {
    Program longer;
    for (const Action& action : program) {
      const Move* move = std::get_if<Move>(&action);
      if (move != nullptr && move->out && move->in) {
        longer.emplace_back(Move{move->out, {}});
        longer.emplace_back(Move{{}, move->in});
      } else {
        longer.push_back(action);
      }
    }
    program = longer;
  }
  return apart;
}

TEST(PipelineClock, OneFOneBWithoutPairsNeverEnds) {
  int circles = 0, all = 0;
  for (int stages = 2; stages <= 8; ++stages) {
    for (int micro_batches = 1; micro_batches <= 32; ++micro_batches, ++all) {
      const Pipeline paired = make_pipeline(PipelineSchedule::one_f_one_b, stages, micro_batches);
      const Simulation step = simulate(taken_apart(paired), {});
      circles += step.ends() ? 0 : 1;
      // With one micro-batch nothing is paired. With more, the last two stages are in each other's
      // way as soon as the first gradient goes back.
      EXPECT_EQ(step.ends(), micro_batches == 1) << stages << ", " << micro_batches;
    }
  }
  EXPECT_EQ(all, 224);
  EXPECT_EQ(circles, 217);
}

TEST(PipelineClock, NamesTheCircle) {
  const auto circle = [](int stages, int micro_batches) {
    const Pipeline paired = make_pipeline(PipelineSchedule::one_f_one_b, stages, micro_batches);
    return simulate(taken_apart(paired), {}).circle;
  };
  EXPECT_EQ(circle(2, 2),
            "stage 0 sends activation 1 to stage 1, which sends gradient 0 to stage 0");
  // Stage 0 waits for stage 1, but is no part of the circle.
  EXPECT_EQ(circle(3, 4),
            "stage 1 sends activation 1 to stage 2, which sends gradient 0 to stage 1");
}

TEST(PipelineClock, NamesACircleOfThree) {
  Pipeline ring{.schedule = "a ring", .micro_batches = 1};
  for (int stage = 0; stage < 3; ++stage) {
    ring.programs.push_back({Move{{}, Message{(stage + 1) % 3, Payload::activation, stage}}});
  }
  EXPECT_EQ(simulate(ring, {}).circle,
            "stage 0 receives activation 0 from stage 1, which receives activation 1 from stage 2, "
            "which receives activation 2 from stage 0");
}

TEST(PipelineClock, NamesWhoWaitsForOneThatHasEnded) {
  Pipeline pipeline = make_pipeline(PipelineSchedule::gpipe, 2, 2);
  Program& last = pipeline.programs[1];
  last.erase(
      std::find(last.begin(), last.end(), Action(Move{Message{0, Payload::gradient, 1}, {}})));
  const Simulation step = simulate(pipeline, {.forward = {1, 1}, .backward = {1, 1}});
  EXPECT_EQ(step.circle, "stage 0 receives gradient 1 from stage 1, which has ended");
  EXPECT_EQ(step.seconds, 5);  // of stage 1; stage 0 came to B0 at 4, and ended it at 5
}

std::string refusal_of_times(const PipelineTimes& times) {
  try {
    simulate(make_pipeline(PipelineSchedule::gpipe, 3, 4), times);
  } catch (const ContractError& error) {
    return error.what();
  }
  return "none";
}

TEST(PipelineClock, RefusesTimesOfAnotherPipeline) {
  EXPECT_EQ(refusal_of_times({.forward = {1, 1}}), "pipeline: forward has 2 numbers, not 3");
  EXPECT_EQ(refusal_of_times({.backward = {1}}), "pipeline: backward has 1 numbers, not 3");
  EXPECT_EQ(refusal_of_times({.activation = {1, 1, 1}}),
            "pipeline: activation has 3 numbers, not 2");
  EXPECT_EQ(refusal_of_times({.gradient = {1}}), "pipeline: gradient has 1 numbers, not 2");
  EXPECT_EQ(refusal_of_times({.sync = {1}}), "pipeline: sync has 1 numbers, not 3");
  EXPECT_EQ(refusal_of_times({.scales = {1}}), "pipeline: scales has 1 numbers, not 4");
  EXPECT_EQ(refusal_of_times({.pass_bytes = {1}}), "pipeline: pass_bytes has 1 numbers, not 3");
}

}  // namespace
}  // namespace ringlet::train
