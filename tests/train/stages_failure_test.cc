// A rank of a cut model that fails in one of its program's actions: the run ends with one line,
// which names stage, layers and rank, and nobody hangs.

#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "tests/support/files.h"
#include "tests/train/failing_stages.h"
#include "train/sync/transport_choice.h"

namespace ringlet::train {

namespace {

struct Failure {
  In action;
  int rank;
};

/// What the user reads of a run whose rank fails so in its first step.
std::string message_of(const Failure& failure, PipelineSchedule schedule) {
  const auto trap = std::make_shared<Trap>();
  trap->action = failure.action;
  const bool of_layer = failure.action == In::forward || failure.action == In::backward;
  trap->spring = [of_layer] { throw Error(of_layer ? "the layer broke" : "the cable was cut"); };
  constexpr int kRanks = 2 * kReplicas;
  const TrainOptions options = breaking_options(kRanks, failure.rank / kReplicas, trap, schedule);
  const RunSetup setup = make_run_setup(options, formula_splits(96), kRanks);
  comm::LocalGroup threads(kRanks);
  TrappedGroup group(threads, failure.rank, trap);
  std::latch all_are_ready(kRanks);
  name_ranks(group, setup);
  try {
    run_ranks(group, decided(options.execution), [&](Device& device, const Ranks& ranks) {
      TrainLoop loop(setup, device, ranks, {});
      all_are_ready.arrive_and_wait();
      trap->armed = true;
      while (loop.step()) {
      }
    });
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

class FailingAction : public ::testing::TestWithParam<Failure> {};

TEST(NameOfRanks, GathersThemByStage) {
  TrainOptions options = plain_options(4);
  options.execution.stages = "conv1..pool1,conv2..fc2";
  const RunSetup setup = make_run_setup(options, formula_splits(64), 4);
  EXPECT_EQ(
      name_of_ranks(*setup.stages, {1, 2, 3}, setup.replicas),
      "stage 0 (conv1 .. pool1), replica 1, rank 1 and stage 1 (conv2 .. fc2), replicas 0 and "
      "1, ranks 2 and 3");
}

TEST_P(FailingAction, EndsTheRunInTheNameOfItsStage) {
  const Failure& failure = GetParam();
  const int stage = failure.rank / kReplicas, replica = failure.rank % kReplicas;
  // A layer is in both replicas, of which one fails first.
  const bool of_layer = failure.action == In::forward || failure.action == In::backward;
  const auto name_of = [&](int of) {
    return stage_in_words(stage) + ", replica " + std::to_string(of) + ", rank " +
           std::to_string(stage * kReplicas + of) +
           (of_layer ? ": the layer broke" : ": the cable was cut");
  };
  for (const PipelineSchedule schedule :
       {PipelineSchedule::naive, PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string message = message_of(failure, schedule);
    EXPECT_TRUE(message == name_of(replica) || (of_layer && message == name_of(1 - replica)))
        << message << " by " << name_of(replica);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
}

/// What the user reads where a stage of one replica, in threads, hangs in a pass.
std::string message_of_hang(In action, int stage, PipelineSchedule schedule) {
  const auto trap = std::make_shared<Trap>();
  TrainOptions options = breaking_options(2, stage, trap, schedule);
  options.execution.comm_timeout = .3;
  const RunSetup setup = make_run_setup(options, formula_splits(96), 2);
  comm::LocalGroup group(2);
  trap->action = action;
  trap->spring = [&group] {
    for (int i = 0; i < 1000 && !group.aborted(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  name_ranks(group, setup);
  return testing::message_of<Error>([&] {
    run_ranks(group, decided(options.execution), [&](Device& device, const Ranks& ranks) {
      TrainLoop loop(setup, device, ranks, {});
      trap->armed = true;
      while (loop.step()) {
      }
    });
  });
}

TEST(HangingAction, IsNamedWithItsMicroBatch) {
  using enum PipelineSchedule;
  for (const auto& [action, stage, schedule, seen, awaited] :
       {std::tuple{In::forward, 0, one_f_one_b, "forward of micro-batch 0",
                   "activation of micro-batch 0"},
        {In::forward, 1, one_f_one_b, "forward of micro-batch 0", "gradient of micro-batch 0"},
        {In::backward, 1, gpipe, "backward of micro-batch 0", "gradient of micro-batch 0"},
        {In::backward, 0, naive, "backward of micro-batch 0", "activation of micro-batch 1"}}) {
    const std::string message = message_of_hang(action, stage, schedule);
    const std::string rank = "rank " + std::to_string(stage);
    EXPECT_NE(message.find(" (" + std::string(awaited) + "), which did not come; " + rank +
                           " was last seen in \"" + seen + "\" 0."),
              std::string::npos)
        << message;
    EXPECT_NE(message.find(" bytes from " + rank + " (" + awaited + ")"), std::string::npos)
        << message;
  }
}

std::string name_of_case(const ::testing::TestParamInfo<Failure>& test) {
  return std::string(name_of(test.param.action)) + "OnRank" + std::to_string(test.param.rank);
}

INSTANTIATE_TEST_SUITE_P(StagesRun, FailingAction,
                         ::testing::Values(Failure{In::forward, 0}, Failure{In::forward, 3},
                                           Failure{In::backward, 1}, Failure{In::backward, 2},
                                           Failure{In::move_in, 0}, Failure{In::move_in, 3},
                                           Failure{In::move_out, 1}, Failure{In::move_out, 2},
                                           Failure{In::sync, 1}, Failure{In::sync, 2}),
                         name_of_case);

}  // namespace

}  // namespace ringlet::train
