// Schedules of pipelines: each is valid, takes the time that its formula says, and holds as many
// passes as it says, for all small numbers of stages and micro-batches.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "train/pipeline/schedules.h"
#include "train/pipeline/simulate.h"
#include "train/pipeline/validate.h"

namespace ringlet::train {
namespace {

constexpr int kMostStages = 8, kMostMicroBatches = 32;
constexpr double kForwardSeconds = 1,
                 kBackwardSeconds = 2;  // small whole numbers: sums of them are exact

Simulation simulated_with_equal_stages(const Pipeline& pipeline) {
  const auto stages = static_cast<std::size_t>(pipeline.stages());
  return simulate(pipeline, {.forward = std::vector<double>(stages, kForwardSeconds),
                             .backward = std::vector<double>(stages, kBackwardSeconds)});
}

double formula_of(PipelineSchedule schedule, int stages, int micro_batches) {
  const int passes =
      schedule == PipelineSchedule::naive ? micro_batches * stages : micro_batches + stages - 1;
  return passes * (kForwardSeconds + kBackwardSeconds);
}

int bound_of(PipelineSchedule schedule, int stage, int stages, int micro_batches) {
  if (schedule == PipelineSchedule::naive) return 1;
  if (schedule == PipelineSchedule::gpipe) return micro_batches;
  return std::min(micro_batches, stages - stage);
}

class AnyPipelineSchedule : public ::testing::TestWithParam<PipelineSchedule> {
 protected:
  /// Calls f(pipeline, stages, micro_batches) for all small numbers.
  template <class F>
  void for_each_size(const F& f) const {
    for (int stages = 1; stages <= kMostStages; ++stages) {
      for (int micro_batches = 1; micro_batches <= kMostMicroBatches; ++micro_batches) {
        SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(micro_batches));
        f(make_pipeline(GetParam(), stages, micro_batches), stages, micro_batches);
      }
    }
  }
};

TEST_P(AnyPipelineSchedule, HasNoFault) {
  for_each_size([](const Pipeline& pipeline, int stages, int micro_batches) {
    EXPECT_EQ(pipeline.stages(), stages);
    EXPECT_EQ(pipeline.micro_batches, micro_batches);
    EXPECT_EQ(find_fault(pipeline).value_or(""), "");
    EXPECT_NO_THROW(validate(pipeline));
  });
}

TEST_P(AnyPipelineSchedule, TakesTheTimeOfItsFormula) {
  for_each_size([schedule = GetParam()](const Pipeline& pipeline, int stages, int micro_batches) {
    const Simulation step = simulated_with_equal_stages(pipeline);
    const double seconds = formula_of(schedule, stages, micro_batches);
    EXPECT_EQ(step.circle, "");
    EXPECT_EQ(step.seconds, seconds);
    const double alone = stages * micro_batches * (kForwardSeconds + kBackwardSeconds);
    EXPECT_DOUBLE_EQ(step.speedup, alone / seconds);
    EXPECT_NEAR(step.bubble, 1 - alone / (stages * seconds), 1e-12);
  });
}

TEST_P(AnyPipelineSchedule, HoldsAsManyPassesAsItSaysAndNoMore) {
  for_each_size([schedule = GetParam()](const Pipeline& pipeline, int stages, int micro_batches) {
    const Simulation step = simulated_with_equal_stages(pipeline);
    for (int stage = 0; stage < stages; ++stage) {
      const int bound = bound_of(schedule, stage, stages, micro_batches);
      EXPECT_EQ(pipeline.held(stage), bound) << "stage " << stage;
      EXPECT_EQ(step.stages[static_cast<std::size_t>(stage)].peak_held, bound) << "stage " << stage;
      const std::vector<int> held = passes_held(pipeline.programs[static_cast<std::size_t>(stage)]);
      EXPECT_EQ(held.back(), 0) << "stage " << stage;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, AnyPipelineSchedule,
                         ::testing::Values(PipelineSchedule::naive, PipelineSchedule::gpipe,
                                           PipelineSchedule::one_f_one_b),
                         [](const auto& info) {
                           return info.param == PipelineSchedule::one_f_one_b
                                      ? std::string("one_f_one_b")
                                      : std::string(name_of(info.param));
                         });

std::vector<std::string> texts_of(const Pipeline& pipeline) {
  std::vector<std::string> texts;
  for (const Program& program : pipeline.programs) texts.push_back(text_of(program));
  return texts;
}

TEST(PipelineSchedules, OneFOneBPairsWhatItSendsAndReceives) {
  EXPECT_EQ(texts_of(make_pipeline(PipelineSchedule::one_f_one_b, 3, 4)),
            (std::vector<std::string>{
                "F0; send a0 to 1; F1; send a1 to 1; "
                "F2; send a2 to 1, receive g0 from 1; B0; "
                "F3; send a3 to 1, receive g1 from 1; B1; "
                "receive g2 from 1; B2; receive g3 from 1; B3; sync",
                "receive a0 from 0; F0; send a0 to 2; "
                "receive a1 from 0; F1; send a1 to 2, receive g0 from 2; B0; "
                "send g0 to 0, receive a2 from 0; F2; send a2 to 2, receive g1 from 2; B1; "
                "send g1 to 0, receive a3 from 0; F3; send a3 to 2, receive g2 from 2; B2; "
                "send g2 to 0; receive g3 from 2; B3; send g3 to 0; sync",
                "receive a0 from 1; F0; B0; send g0 to 1, receive a1 from 1; F1; B1; "
                "send g1 to 1, receive a2 from 1; F2; B2; send g2 to 1, receive a3 from 1; F3; B3; "
                "send g3 to 1; sync"}));
}

TEST(PipelineSchedules, OneFOneBTakesFewerMicroBatchesThanStages) {
  EXPECT_EQ(texts_of(make_pipeline(PipelineSchedule::one_f_one_b, 3, 1)),
            (std::vector<std::string>{
                "F0; send a0 to 1; receive g0 from 1; B0; sync",
                "receive a0 from 0; F0; send a0 to 2; receive g0 from 2; B0; send g0 to 0; sync",
                "receive a0 from 1; F0; B0; send g0 to 1; sync"}));
}

TEST(PipelineSchedules, NaiveAndGPipeDifferInTheirOrder) {
  EXPECT_EQ(texts_of(make_pipeline(PipelineSchedule::naive, 2, 2)),
            (std::vector<std::string>{"F0; send a0 to 1; receive g0 from 1; B0; "
                                      "F1; send a1 to 1; receive g1 from 1; B1; sync",
                                      "receive a0 from 0; F0; B0; send g0 to 0; "
                                      "receive a1 from 0; F1; B1; send g1 to 0; sync"}));
  EXPECT_EQ(texts_of(make_pipeline(PipelineSchedule::gpipe, 2, 2)),
            (std::vector<std::string>{"F0; send a0 to 1; F1; send a1 to 1; "
                                      "receive g0 from 1; B0; receive g1 from 1; B1; sync",
                                      "receive a0 from 0; F0; receive a1 from 0; F1; "
                                      "B0; send g0 to 0; B1; send g1 to 0; sync"}));
}

TEST(PipelineSchedules, OneStageMovesNothing) {
  const auto only = [](PipelineSchedule schedule) {
    return texts_of(make_pipeline(schedule, 1, 2));
  };
  EXPECT_EQ(only(PipelineSchedule::naive), std::vector<std::string>{"F0; B0; F1; B1; sync"});
  EXPECT_EQ(only(PipelineSchedule::one_f_one_b), std::vector<std::string>{"F0; B0; F1; B1; sync"});
  EXPECT_EQ(only(PipelineSchedule::gpipe), std::vector<std::string>{"F0; F1; B0; B1; sync"});
}

std::string refusal_of(int stages, int micro_batches) {
  try {
    make_pipeline(PipelineSchedule::one_f_one_b, stages, micro_batches);
  } catch (const ContractError& error) {
    return error.what();
  }
  return "none";
}

TEST(PipelineSchedules, RefuseNothingToDo) {
  EXPECT_EQ(refusal_of(2, 0),
            "pipeline of 2 stages and 0 micro-batches: there is at least one of each");
  EXPECT_EQ(refusal_of(0, 4),
            "pipeline of 0 stages and 4 micro-batches: there is at least one of each");
  EXPECT_EQ(refusal_of(1, 1), "none");
}

TEST(PipelineSchedules, HaveActionsThatAreReadAsTheyAreWritten) {
  for (const std::string& schedule : pipeline_schedule_names()) {
    for (const Program& program :
         make_pipeline(parse_pipeline_schedule(schedule), 12, 13).programs) {
      for (const Action& action : program) {
        const auto read = action_of(text_of(action));
        ASSERT_TRUE(read.has_value()) << text_of(action);
        EXPECT_EQ(*read, action) << text_of(action);
      }
    }
  }
  for (const char* text :
       {"", "F", "F-1", "F01", "F1 ", "f1", "B99999999999", "send a0 to 2147483647", "sync ",
        "send", "send a1", "send a1 to", "send a1 to 0,", "send a1 to 0, receive", "send x1 to 0",
        "receive a1 to 0", "receive g0 from 1, send a0 to 1", "receive g0 from 1 ",
        "move nothing"}) {
    EXPECT_FALSE(action_of(text).has_value()) << text;
  }
}

TEST(PipelineSchedules, HaveActionsInWords) {
  EXPECT_EQ(in_words(Forward{3}), "forward of micro-batch 3");
  EXPECT_EQ(in_words(Backward{0}), "backward of micro-batch 0");
  EXPECT_EQ(in_words(Sync{}), "summing gradients");
  const Message out{.peer = 1, .payload = Payload::activation, .micro_batch = 3},
      in{.peer = 1, .payload = Payload::gradient, .micro_batch = 1};
  EXPECT_EQ(in_words(Move{.out = out}), "handing on the activation of micro-batch 3");
  EXPECT_EQ(in_words(Move{.in = in}), "waiting for the gradient of micro-batch 1");
  EXPECT_EQ(in_words(Move{.out = out, .in = in}),
            "handing on the activation of micro-batch 3 and waiting for the gradient of "
            "micro-batch 1");
}

TEST(PipelineSchedules, AreKnownByName) {
  EXPECT_EQ(pipeline_schedule_names(), (std::vector<std::string>{"naive", "gpipe", "1f1b"}));
  for (const std::string& name : pipeline_schedule_names()) {
    EXPECT_EQ(name_of(parse_pipeline_schedule(name)), name);
  }
  try {
    parse_pipeline_schedule("1F1B");
    FAIL() << "taken";
  } catch (const ContractError& error) {
    EXPECT_STREQ(error.what(), "'pipeline' is not naive, gpipe, 1f1b");
  }
}

}  // namespace
}  // namespace ringlet::train
