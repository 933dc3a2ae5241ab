// A rank of a cut model that fails in one of its program's actions: the run ends with one line,
// which names stage, layers and rank, and nobody hangs.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kernels/elementwise.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/tape.h"
#include "tests/comm/failing_transport.h"
#include "tests/train/runs.h"
#include "train/sync/transport_choice.h"

namespace ringlet::train {

namespace {

constexpr int kStages = 2, kReplicas = 2;

enum class In { forward, backward, move, sync };

struct Failure {
  In action;
  int rank;
  const char* what;
};

/// Whose layer fails, and from when on. Its layer is in a stage that two replicas have.
struct Trap {
  std::atomic<bool> armed{false};
  In action;
  std::atomic<int> left{1};  // failures: of the first rank that comes
  bool springs(In in) { return armed && action == in && left.fetch_sub(1) > 0; }
};

/// Hands its input on, and fails on the way there or back.
class Breaking final : public nn::Layer {
 public:
  explicit Breaking(std::shared_ptr<Trap> trap) : trap_(std::move(trap)) {}

  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    if (trap_->springs(In::forward)) throw Error("the layer broke");
    const nn::Variable y = tape.make(x.shape(), x.layout(), x.dtype());
    scale(tape.stream(), 1, x.value(), 0, y.value());
    tape.record("scale", {x}, y, 1.0F, [=, trap = trap_.get()](nn::Backward& backward) {
      if (trap->springs(In::backward)) throw Error("the layer broke");
      const auto [dx, beta] = backward.target(x);
      scale(backward.stream(), 1, backward.gradient(y), beta, dx);
    });
    return y;
  }

 private:
  std::shared_ptr<Trap> trap_;
};

/// Of two stages, of which `stage` can break.
MakeModel breaking_in(int stage, const std::shared_ptr<Trap>& trap) {
  return [=](const nn::ModelInput& input) {
    auto net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("fc1", input.channels * input.height * input.width, 24);
    if (stage == 0)
      net->add<Breaking>("breaking", trap);  // behind what learns, or nothing comes back
    net->add<nn::Linear>("fc2", 24, 16);
    if (stage == 1) net->add<Breaking>("breaking", trap);
    net->add<nn::Linear>("fc3", 16, input.outputs);
    return net;
  };
}

/// Threads, of which one has a transport on one channel that can be told to fail.
class FailingGroup final : public comm::Group {
 public:
  FailingGroup(int ranks, int rank, int number)
      : Group(0, ranks, ranks), local_(ranks), rank_(rank), number_(number) {}

  int channels() const override { return local_.channels(); }
  comm::Transport& channel(int rank, int number) override {
    comm::Transport& own = local_.channel(rank, number);
    if (rank != rank_ || number != number_) return own;
    if (!failing_) {
      failing_ = std::make_unique<comm::FailingTransport>(own, comm::FailingTransport::kNever);
    }
    return *failing_;
  }
  void open_channels(int count) override { local_.open_channels(count); }
  bool abort(int rank, const std::string& message) noexcept override {
    return local_.abort(rank, message);
  }
  std::string agree(const std::string& key, const std::optional<std::string>& mine,
                    double timeout_seconds) override {
    return local_.agree(key, mine, timeout_seconds);
  }
  std::shared_ptr<void> share(const std::string& key, std::int64_t bytes,
                              double timeout_seconds) override {
    return local_.share(key, bytes, timeout_seconds);
  }

  /// On the rank's thread: its next exchange on the channel throws.
  void fail_next(int rank) {
    if (rank == rank_ && failing_) failing_->fail_next();
  }

 private:
  comm::LocalGroup local_;
  int rank_, number_;
  std::unique_ptr<comm::FailingTransport> failing_;
};

/// Of the first axis of the mesh, and of the second.
int channel_of(In action) { return action == In::sync ? 2 : 1; }

/// What the user reads of a run whose rank fails so in its first step.
std::string message_of(const Failure& failure, PipelineSchedule schedule) {
  const auto trap = std::make_shared<Trap>();
  trap->action = failure.action;
  TrainOptions options = plain_options(kStages * kReplicas);
  options.recipe.model = "breaking";
  options.recipe.accumulate = 3;
  options.make_model = breaking_in(failure.rank / kReplicas, trap);
  options.execution.pipeline = schedule;
  const bool in_first = failure.rank / kReplicas == 0;
  options.execution.stages = in_first ? "flatten..breaking,fc2..fc3" : "flatten..fc1,fc2..fc3";
  const RunSetup setup = make_run_setup(options, formula_splits(96), kStages * kReplicas);
  const bool in_transport = failure.action == In::move || failure.action == In::sync;
  FailingGroup group(kStages * kReplicas, in_transport ? failure.rank : -1,
                     channel_of(failure.action));
  std::latch all_are_ready(kStages * kReplicas);
  name_ranks(group, setup);
  try {
    run_ranks(group, decided(options.execution), [&](Device& device, const Ranks& ranks) {
      TrainLoop loop(setup, device, ranks, {});
      all_are_ready.arrive_and_wait();
      trap->armed = true;
      group.fail_next(ranks.world.rank());
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
      name_of_ranks(*setup.stages, {1, 2, 3}, setup.ranks),
      "stage 0 (conv1 .. pool1), replica 1, rank 1 and stage 1 (conv2 .. fc2), replicas 0 and "
      "1, ranks 2 and 3");
}

TEST_P(FailingAction, EndsTheRunInTheNameOfItsStage) {
  const Failure& failure = GetParam();
  const int stage = failure.rank / kReplicas, replica = failure.rank % kReplicas;
  const std::string layers = stage == 0 ? "(flatten .. breaking)" : "(fc2 .. fc3)";
  const auto name_of = [&](int of) {
    return "stage " + std::to_string(stage) + " " + layers + ", replica " + std::to_string(of) +
           ", rank " + std::to_string(stage * kReplicas + of) + ": " + failure.what;
  };
  for (const PipelineSchedule schedule :
       {PipelineSchedule::naive, PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string message = message_of(failure, schedule);
    // A layer is in both replicas, of which one fails first.
    const bool of_either = failure.action == In::forward || failure.action == In::backward;
    EXPECT_TRUE(message == name_of(replica) || (of_either && message == name_of(1 - replica)))
        << message << " by " << name_of(replica);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
}

std::string name_of_case(const ::testing::TestParamInfo<Failure>& test) {
  constexpr std::array kNames{"Forward", "Backward", "Move", "Sync"};
  return std::string(kNames.at(static_cast<std::size_t>(test.param.action))) + "OnRank" +
         std::to_string(test.param.rank);
}

INSTANTIATE_TEST_SUITE_P(StagesRun, FailingAction,
                         ::testing::Values(Failure{In::forward, 0, "the layer broke"},
                                           Failure{In::forward, 3, "the layer broke"},
                                           Failure{In::backward, 1, "the layer broke"},
                                           Failure{In::backward, 2, "the layer broke"},
                                           Failure{In::move, 0, "the cable was cut"},
                                           Failure{In::move, 3, "the cable was cut"},
                                           Failure{In::sync, 1, "the cable was cut"},
                                           Failure{In::sync, 2, "the cable was cut"}),
                         name_of_case);

}  // namespace

}  // namespace ringlet::train
