// Steps in which several forwards come before the first one's backward (ReplicaSpec::passes): the
// bits are those of a forward and a backward by turns, and no more passes are held than are asked.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "tests/train/runs.h"
#include "train/loop/train_step.h"

namespace ringlet::train {

namespace {

constexpr std::int64_t kStepsAhead = 3;

/// Running statistics, and masks that depend on where a sample stands.
std::unique_ptr<nn::Layer> make_dropping(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Conv2d>("conv1", nn::Conv2dOptions{.in_channels = input.channels,
                                                  .out_channels = 4,
                                                  .spec = {.stride = {2, 2}, .padding = {1, 1}}});
  net->add<nn::BatchNorm2d>("bn1", 4);
  net->add<nn::ReLU>("relu");
  net->add<nn::Dropout>("dropout", 0.3F);
  net->add<nn::AdaptiveAvgPool2d>("avgpool");
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("fc", 4, input.outputs);
  return net;
}

struct Driven {
  std::string state;
  std::vector<double> told;  // loss and samples of each step
  bool operator==(const Driven&) const = default;
};

/// Of rank 0, after kStepsAhead steps with so many passes held at once; 0: by add().
Driven drive(const TrainOptions& options, const data::Splits& data, int ranks, int held,
             bool recompute = false) {
  RunSetup setup = make_run_setup(options, data, ranks);
  setup.replica.passes = std::max(1, held);
  setup.replica.recompute = recompute;
  const Partition& partition = setup.partition;
  Driven driven;
  run_replicas(options.execution, [&](Device& device, comm::Communicator& communicator) {
    const int rank = communicator.rank();
    const std::int64_t units = partition.units(rank);
    const auto shards = static_cast<int>(partition.shards_of(rank).size());
    TrainStep step(device, communicator, setup.replica,
                   {.shards = partition.exact ? shards : 1,
                    .grad_norm = true,
                    .world_statistics = options.recipe.batch_norm == BatchStatistics::world});
    step.replica().parameters().initialize(options.recipe.seed);
    step.broadcast_state();
    const data::BatchSchedule schedule =
        [&partition, rank, units](std::int64_t k) -> std::optional<data::BatchRequest> {
      if (k >= kStepsAhead * units) return {};
      return partition.unit(k / units, rank, k % units);
    };
    const auto source = make_batch_source(device, data.train, schedule,
                                          {.loader = setup.loader,
                                           .seed = options.recipe.seed,
                                           .per_step = units,
                                           .held = setup.replica.passes});
    for (std::int64_t k = 0; k < kStepsAhead; ++k) {
      step.begin(setup.schedule.at(k), partition.step_range(k).size(),
                 partition.rank_range(k, rank).size(), false);
      std::int64_t begun = 0;
      for (std::int64_t unit = 0; unit < units; ++unit) {
        for (; begun < std::min(units, unit + setup.replica.passes); ++begun) {
          const data::Batch& batch = *source->next();
          const MicroBatch micro = micro_batch(partition, k, begun, units);
          if (held == 0) {
            step.add(batch, micro);
          } else {
            step.forward(batch, micro, {}, static_cast<int>(begun % held));
          }
        }
        if (held > 0) step.backward(static_cast<int>(unit % held));
      }
      step.finish_gradients();
      step.send_sums();
      const StepSums sums = step.take_sums();
      step.update();
      if (rank != 0) continue;
      driven.told.push_back(sums.loss);
      driven.told.push_back(static_cast<double>(sums.samples));
      driven.told.push_back(sums.grad_norm);
    }
    if (rank == 0) driven.state = bytes_of(step.download_state());
  });
  return driven;
}

TrainOptions dropping(TrainOptions options, int accumulate) {
  options.recipe.model = "dropping";
  options.make_model = make_dropping;
  options.recipe.accumulate = accumulate;
  options.recipe.batch_size = 53;
  return options;
}

/// The last step of the three is short, and most of its micro-batches are empty.
data::Splits three_steps() { return formula_splits(2 * 53 + 3); }

void expect_equal_for(const TrainOptions& options, int ranks, const std::vector<int>& held) {
  const data::Splits data = three_steps();
  const Driven by_turns = drive(options, data, ranks, 0);
  ASSERT_EQ(by_turns.told.size(), 3 * kStepsAhead);
  EXPECT_EQ(by_turns.told[1], 53);
  for (const int passes : held) {
    for (const bool recompute : {false, true}) {
      SCOPED_TRACE(std::to_string(passes) + (recompute ? " held, recomputed" : " held"));
      const Driven ahead = drive(options, data, ranks, passes, recompute);
      EXPECT_EQ(ahead.told, by_turns.told);
      EXPECT_TRUE(ahead.state == by_turns.state);
    }
  }
}

}  // namespace

TEST(Passes, ThatAreHeldChangeNoBit) {
  expect_equal_for(dropping(plain_options(1), 5), 1, {1, 2, 3, 5});
}

TEST(Passes, ThatAreHeldChangeNoBitOfSeveralReplicas) {
  expect_equal_for(dropping(plain_options(2), 4), 2, {2, 4});
}

TEST(Passes, ThatAreHeldMeetInTheWorldsBatchNorm) {
  TrainOptions options = dropping(plain_options(2), 4);
  options.recipe.batch_norm = BatchStatistics::world;
  expect_equal_for(options, 2, {2, 4});
}

TEST(Passes, ThatAreHeldChangeNoBitInExactMode) {
  TrainOptions options = dropping(exact_options(2), 2);
  options.recipe.shards = 8;
  expect_equal_for(options, 2, {2, 3, 8});
}

TEST(Passes, AreNotTakenWhileTheyAreHeld) {
  const TrainOptions options = dropping(plain_options(1), 2);
  RunSetup setup = make_run_setup(options, three_steps(), 1);
  setup.replica.passes = 2;
  run_replicas(options.execution, [&](Device& device, comm::Communicator& communicator) {
    TrainStep step(device, communicator, setup.replica, {});
    step.begin({0.1, 0.9}, 1, 0, false);
    EXPECT_THROW(step.backward(1), ContractError);
    step.forward({}, {.last_of_shard = false, .last = false}, {}, 1);
    EXPECT_THROW(step.forward({}, {.first_of_shard = false}, {}, 1), ContractError);
    step.backward(1);
    EXPECT_THROW(step.backward(1), ContractError);
  });
}

TEST(Passes, HaveActivationsOfTheirOwnUnlessTheyRecompute) {
  const TrainOptions options = dropping(plain_options(1), 4);
  RunSetup setup = make_run_setup(options, three_steps(), 1);
  const auto device = open_device({DeviceKind::cpu, 0});
  const auto bytes_with = [&](int passes, bool recompute = false) {
    setup.replica.passes = passes;
    setup.replica.recompute = recompute;
    const std::int64_t before = device->bytes_held();
    const Replica replica(*device, setup.replica);
    EXPECT_EQ(replica.passes(), passes);
    return device->bytes_held() - before;
  };
  const std::int64_t one = bytes_with(1);
  const Replica replica(*device, setup.replica);
  EXPECT_EQ(bytes_with(3), one + 2 * replica.plan().activation_bytes);
  EXPECT_EQ(bytes_with(3, true), one);
}

}  // namespace ringlet::train
