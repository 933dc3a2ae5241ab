// Training over NCCL, between GPUs: of this machine, or of the stand-in for GPUs
// (RINGLET_STAND_IN_GPUS=2). Skipped where there are fewer than two.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/cuda_devices.h"
#include "nn/models/lenet.h"
#include "tests/comm/processes.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "tests/train/stand_in_nodes.h"
#include "train/learner.h"
#include "train/trainer.h"

namespace ringlet::train {
namespace {

class CudaNcclTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() < 2) GTEST_SKIP() << "there are fewer than two GPUs";
    if (comm::nccl_version().empty()) GTEST_SKIP() << "there is no NCCL";
  }
  /// On GPUs 0 and 1.
  static TrainOptions between_gpus(TrainOptions options, TransportChoice transport) {
    options.execution.devices = {{DeviceKind::cuda, 0}, {DeviceKind::cuda, 1}};
    options.execution.transport = transport;
    options.execution.bucket_kb = 64;
    options.max_steps = 4;
    return options;
  }
};

// A sum of two numbers has the same bits in either order, and exact mode has its own order.
TEST_F(CudaNcclTraining, ThreadsLearnWhatTheyLearnOverTheLocalTransport) {
  const data::Splits data = formula_splits(150);
  const auto bytes = [&](const TrainOptions& options, TransportChoice transport) {
    return bytes_of(run(between_gpus(options, transport), data).state);
  };
  TrainOptions narrow = plain_options(2, "ring");
  narrow.recipe.grad_dtype = DType::bf16;
  const std::string expected = bytes(plain_options(2, "ring"), TransportChoice::local);
  EXPECT_EQ(bytes(plain_options(2, "ring"), TransportChoice::nccl), expected);
  EXPECT_EQ(bytes(plain_options(2, "nccl"), TransportChoice::nccl), expected);
  EXPECT_EQ(bytes(plain_options(2, "library"), TransportChoice::nccl), expected);
  EXPECT_EQ(bytes(narrow, TransportChoice::nccl), bytes(narrow, TransportChoice::local));
  EXPECT_EQ(bytes(exact_options(2), TransportChoice::nccl),
            bytes(exact_options(2), TransportChoice::local));
}

/// By a loss whose centres are cut over the ranks.
TrainOptions with_centres(TrainOptions options) {
  options.recipe.loss = "arcface";
  options.recipe.scale = 16;
  options.recipe.embedding_size = 5;
  return options;
}

/// All numbers of rank 0, and why no graph holds collectives. Each rank is a process of its own,
/// played by a thread.
struct Learnt {
  std::string bytes, why_no_captures;
};

Learnt learn_in_processes(bool graph, const data::Splits& data, bool centres = false) {
  setenv("RINGLET_STAND_IN_RANKS", "processes", 1);  // NOLINT(concurrency-mt-unsafe)
  comm::Processes processes({2, 1});
  std::vector<Learnt> learnt(2);
  comm::run_ranks(2, [&](int process) {
    TrainOptions options = plain_options(1, "nccl");
    options.execution.devices = {{DeviceKind::cuda, process}};
    options.execution.in_processes = true;
    options.execution.transport = TransportChoice::nccl;
    options.execution.bucket_kb = 64;
    options.execution.graph = graph;
    options.recipe.epochs = 2;
    if (centres) options = with_centres(std::move(options));
    const RunSetup setup = make_run_setup(options, data, 2);
    run_replicas(
        processes.group(process), setup.options.execution,
        [&](Device& device, comm::Communicator& communicator) {
          TrainLoop loop(setup, device, communicator, {});
          loop.run();
          learnt[static_cast<std::size_t>(process)] = {
              bytes_of(download(device, loop.replica().parameters(), loop.optimizer().state())),
              communicator.transport().why_no_captures()};
        });
  });
  unsetenv("RINGLET_STAND_IN_RANKS");                       // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(learnt[0].bytes == learnt[1].bytes, !centres);  // each has rows of its own
  return learnt[0];
}

// A GPU each: a step is one graph, the collectives of its buckets included.
TEST_F(CudaNcclTraining, ProcessesReplayWholeStepsAsGraphs) {
  const data::Splits data = formula_splits(150);
  Learnt with_graphs;
  const NodesOfGraphs graphs =
      nodes_of_graphs([&] { with_graphs = learn_in_processes(true, data); });
  EXPECT_EQ(with_graphs.why_no_captures, "");
  EXPECT_EQ(with_graphs.bytes, learn_in_processes(false, data).bytes);
  setenv("RINGLET_NCCL_THREADS", "off", 1);  // NOLINT(concurrency-mt-unsafe)
  const Learnt without_threads = learn_in_processes(true, data);
  unsetenv("RINGLET_NCCL_THREADS");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(without_threads.why_no_captures, "");
  EXPECT_EQ(without_threads.bytes, with_graphs.bytes);
  if (!on_stand_in()) return;
  const auto is_step = [](const std::vector<std::string>& nodes) {
    const auto is_sum = [](const std::string& node) { return node.ends_with("nccl"); };
    return std::count_if(nodes.begin(), nodes.end(), is_sum) > 1 && nodes.back() == "sgd_update";
  };
  EXPECT_EQ(std::count_if(graphs.begin(), graphs.end(), is_step), 4);  // full and short batch
}

/// Gathers, a reduce-scatter and an exchange of every rank with every other, in a graph too.
TEST_F(CudaNcclTraining, CentresLearnWhatTheyLearnOverTheLocalTransport) {
  const data::Splits data = formula_splits(150);
  const auto bytes = [&](TransportChoice transport) {
    return bytes_of(run(between_gpus(with_centres(plain_options(2)), transport), data).state);
  };
  EXPECT_EQ(bytes(TransportChoice::nccl), bytes(TransportChoice::local));
  const Learnt with_graphs = learn_in_processes(true, data, true);
  EXPECT_EQ(with_graphs.why_no_captures, "");
  EXPECT_EQ(with_graphs.bytes, learn_in_processes(false, data, true).bytes);
}

TEST_F(CudaNcclTraining, GoesOnWithoutGraphsWhereNcclRefusesThem) {
  if (!on_stand_in()) GTEST_SKIP() << "only the stand-in can be told to refuse";
  const data::Splits data = formula_splits(150);
  setenv("RINGLET_STAND_IN_NCCL", "refuses-capture", 1);  // NOLINT(concurrency-mt-unsafe)
  const Learnt refused = learn_in_processes(true, data);
  unsetenv("RINGLET_STAND_IN_NCCL");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(refused.why_no_captures.rfind("rank 0: ncclAllReduce failed", 0), 0U)
      << refused.why_no_captures;
  EXPECT_EQ(refused.bytes, learn_in_processes(true, data).bytes);
}

// The test data are one pass, which one rank makes: the other is at the sum at once, and its GPU
// waits there while the first one still allocates.
TEST_F(CudaNcclTraining, EvaluatesWhereOneRankHasNothingToTest) {
  const data::Splits data = formula_splits(150);
  const testing::TemporaryDirectory folder;
  const std::filesystem::path model = folder / "model.safetensors";
  TrainOptions options = between_gpus(plain_options(2), TransportChoice::nccl);
  options.files.out = folder.path();
  run(options, data);
  const auto tested = [&](TransportChoice transport) {
    options.execution.transport = transport;
    const Evaluation evaluation = evaluate(make_run_setup(options, data, 2), model);
    return std::pair(evaluation.samples, evaluation.loss);
  };
  const auto expected = tested(TransportChoice::local);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(tested(TransportChoice::nccl), expected);
}

// What is allocated later could wait for a collective on another GPU, for ever.
TEST_F(CudaNcclTraining, LearnersAllocateNothingBehindTheirRehearsal) {
  const auto dataset = formula_dataset(64);
  Execution execution;
  execution.devices = {{DeviceKind::cuda, 0}, {DeviceKind::cuda, 1}};
  execution.sync = "nccl";
  const nn::ModelInput input{1, static_cast<int>(dataset->height()),
                             static_cast<int>(dataset->width()),
                             static_cast<int>(dataset->target_values())};
  run_replicas(execution, [&](Device& device, comm::Communicator& communicator) {
    const auto make_lenet = [](const nn::ModelInput& made_for) {
      return nn::make_lenet(made_for, nn::LeNetStart::practitioner);
    };
    Learner learner(device, communicator, make_lenet,
                    {.input = input, .max_batch = 32, .other_batches = {7}});
    const std::int64_t before = device.allocations();
    std::vector<float> images(static_cast<std::size_t>(32 * input.height * input.width), 0.5F);
    std::vector<std::int32_t> labels(32, 1);
    for (const std::int64_t samples : {32, 7, 32}) {
      const data::Batch batch{images.data(), labels.data(), samples, {0, 0, samples}};
      learner.accumulate(batch, 4 * samples);
      learner.step(batch, 4 * samples, {.lr = 0.1, .momentum = 0.9});
      learner.count_right(batch);
    }
    EXPECT_EQ(device.allocations(), before);
  });
}

}  // namespace
}  // namespace ringlet::train
