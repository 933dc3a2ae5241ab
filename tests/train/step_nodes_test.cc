// What a training step launches on a GPU: the nodes of its captured graph, counted on the stand-in
// for GPUs (tests/cuda_stand_in/stand_in.h), which runs the very dispatch.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/switches.h"
#include "tests/train/runs.h"
#include "tests/train/stand_in_nodes.h"

namespace ringlet::train {
namespace {

constexpr std::size_t kMost = 21;

/// Of a run of LeNet on a GPU.
TrainOptions lenet_options() {
  TrainOptions options = plain_options(1);
  options.recipe.model = "lenet-d2l";
  options.execution.devices = {{DeviceKind::cuda, 0}};
  return options;
}

TEST(StepNodes, OfLenetAreFew) {
  if (!on_stand_in()) GTEST_SKIP() << "the nodes are counted on the stand-in for GPUs";
  TrainOptions options = lenet_options();
  options.execution.graph = true;
  options.max_steps = 4;
  const NodesOfGraphs graphs = nodes_of_graphs([&] { run(options, formula_splits(256)); });
  ASSERT_FALSE(graphs.empty());
  for (const std::vector<std::string>& nodes : graphs) {
    std::string names;
    for (const std::string& node : nodes) names += node + " ";
    EXPECT_LE(nodes.size(), kMost) << names;
    EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "upload"), 0) << names;  // done before
  }
}

// As many as in nchw: pooling writes what is flattened in the order of the linear layer's weights.
TEST(StepNodes, OfLenetInNhwcAreFew) {
  if (!on_stand_in()) GTEST_SKIP() << "the nodes are counted on the stand-in for GPUs";
  TrainOptions options = lenet_options();
  options.execution.tf32 = true;
  options.max_steps = 4;
  const NodesOfGraphs graphs = nodes_of_graphs([&] { run(options, formula_splits(256)); });
  ASSERT_FALSE(graphs.empty());
  for (const std::vector<std::string>& nodes : graphs) {
    std::string names;
    for (const std::string& node : nodes) names += node + " ";
    EXPECT_LE(nodes.size(), kMost) << names;
    const auto copies = std::count_if(nodes.begin(), nodes.end(), [](const std::string& node) {
      return node.ends_with("change_channels");
    });
    EXPECT_EQ(copies, 0) << names;
  }
}

// Casts: of the weights, the images, both results of linear layers with a bias, and the factors of
// each gradient of filters.
TEST(StepNodes, OfLenetInBf16AreFew) {
  if (!on_stand_in()) GTEST_SKIP() << "the nodes are counted on the stand-in for GPUs";
  constexpr std::size_t kCasts = 6;
  TrainOptions options = lenet_options();
  options.recipe.precision = Precision::bf16;
  options.max_steps = 4;
  const NodesOfGraphs graphs = nodes_of_graphs([&] { run(options, formula_splits(256)); });
  ASSERT_FALSE(graphs.empty());
  for (const std::vector<std::string>& nodes : graphs) {
    std::string names;
    for (const std::string& node : nodes) names += node + " ";
    EXPECT_LE(nodes.size(), kMost + kCasts) << names;
    const auto casts = std::count_if(
        nodes.begin(), nodes.end(), [](const std::string& node) { return node.ends_with("cast"); });
    EXPECT_EQ(casts, kCasts) << names;
  }
}

/// Hears why a run goes on without graphs.
struct Refusals : RunListener {
  void graph_refused(const std::string& why) override { heard.push_back(why); }
  std::vector<std::string> heard;
};

// As a library would whose engine waits for its stream.
TEST(StepNodes, OfAStepThatCannotBeCapturedRunEagerly) {
  if (!on_stand_in()) GTEST_SKIP() << "only the stand-in can be told to refuse";
  TrainOptions options = plain_options(1);
  options.execution.devices = {{DeviceKind::cuda, 0}};
  options.recipe.epochs = 2;
  const std::string captured = bytes_of(run(options, formula_splits(100)).state);
  Refusals refusals;
  setenv("RINGLET_STAND_IN_CAPTURE", "breaks", 1);  // NOLINT(concurrency-mt-unsafe)
  const std::string eager = bytes_of(run(options, formula_splits(100), {&refusals}).state);
  unsetenv("RINGLET_STAND_IN_CAPTURE");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_TRUE(eager == captured);
  ASSERT_EQ(refusals.heard.size(), 1U);  // once, and not for the short batch
  EXPECT_NE(refusals.heard[0].find("ended by cudaStreamSynchronize while a"), std::string::npos)
      << refusals.heard[0];
}

// Where both gradients of a layer are wanted, and are more than a few microseconds' work, that of
// the weights runs beside that of the data: the second convolution's and the first linear layer's.
TEST(StepNodes, OfLenetComputeWeightGradientsBesideDataGradients) {
  if (!on_stand_in()) GTEST_SKIP() << "the nodes are counted on the stand-in for GPUs";
  TrainOptions options = lenet_options();
  options.recipe.batch_size = 256;
  options.recipe.epochs = 4;  // the graph is launched three times: the stand-in has three ways
  Outcome outcome;
  const NodesOfGraphs graphs =
      nodes_of_graphs([&] { outcome = run(options, formula_splits(256)); });
  ASSERT_EQ(graphs.size(), 1U);
  std::vector<std::string> beside;
  for (const std::string& node : graphs[0]) {
    if (node.starts_with("|")) beside.push_back(node);
  }
  EXPECT_EQ(beside, (std::vector<std::string>{"|matmul", "|conv2d_backward_data"}));
  options.execution.graph = false;  // one after the other
  EXPECT_TRUE(bytes_of(outcome.state) == bytes_of(run(options, formula_splits(256)).state));
}

// By plans of the real cuDNN, whose deterministic engines for LeNet's filters are naive.
TEST(StepNodes, OfADeterministicLenetHaveOurFilterGradients) {
  if (!on_stand_in()) GTEST_SKIP() << "the nodes are counted on the stand-in for GPUs";
  setenv("RINGLET_STAND_IN_PLANNER", "cudnn", 1);  // NOLINT(concurrency-mt-unsafe)
  TrainOptions options = plain_options(1);
  options.recipe.model = "lenet-d2l";
  options.recipe.batch_size = 32;
  options.execution.devices = {{DeviceKind::cuda, 0}};
  options.max_steps = 4;
  for (const bool deterministic : {false, true}) {
    options.execution.deterministic = deterministic;
    const NodesOfGraphs graphs = nodes_of_graphs([&] { run(options, formula_splits(64)); });
    ASSERT_FALSE(graphs.empty());
    for (const std::vector<std::string>& nodes : graphs) {
      const auto count = [&](const std::string& name) {
        return std::ranges::count_if(
            nodes, [&](const std::string& node) { return node == name || node == "|" + name; });
      };
      const int ours = deterministic ? 2 : 0;  // of two convolutions
      EXPECT_EQ(count("conv2d_backward_filter_products"), ours);
      EXPECT_EQ(count("conv2d_backward_filter_sum"), ours);
      EXPECT_EQ(count("conv2d_backward_filter"), 2 - ours);
    }
  }
  unsetenv("RINGLET_STAND_IN_PLANNER");  // NOLINT(concurrency-mt-unsafe)
}

class SwitchedOff {
 public:
  explicit SwitchedOff(const char* name) : name_(name) {
    setenv(name, "off", 1);
  }                                    // NOLINT(concurrency-mt-unsafe)
  ~SwitchedOff() { unsetenv(name_); }  // NOLINT(concurrency-mt-unsafe)
  SwitchedOff(const SwitchedOff&) = delete;
  SwitchedOff& operator=(const SwitchedOff&) = delete;

 private:
  const char* name_;
};

// scripts/gpu_check turns them off one by one where tests fail.
TEST(StepNodes, SwitchesLeaveOutWhatTheyName) {
  if (!on_stand_in()) GTEST_SKIP() << "the nodes are counted on the stand-in for GPUs";
  TrainOptions options = lenet_options();
  options.recipe.batch_size = 64;
  options.recipe.epochs = 3;
  std::string bytes;
  const auto nodes_without = [&](const char* name) {
    const SwitchedOff off(name);
    return nodes_of_graphs([&] { bytes = bytes_of(run(options, formula_splits(64)).state); });
  };
  const NodesOfGraphs whole = nodes_without("RINGLET_NOTHING");
  const std::string expected = bytes;
  ASSERT_EQ(whole.size(), 1U);

  EXPECT_TRUE(nodes_without(kCaptures).empty());
  EXPECT_TRUE(bytes == expected);
  const NodesOfGraphs straight = nodes_without(kBranches);
  EXPECT_TRUE(bytes == expected);
  ASSERT_EQ(straight.size(), 1U);
  EXPECT_EQ(straight[0].size(), whole[0].size());
  EXPECT_TRUE(std::ranges::none_of(straight[0], [](auto& node) { return node.starts_with("|"); }));
  const NodesOfGraphs apart = nodes_without(kFused);
  ASSERT_EQ(apart.size(), 1U);
  const auto biases = [](const std::vector<std::string>& nodes) {
    return std::ranges::count_if(nodes, [](auto& node) { return node.ends_with("bias_forward"); });
  };
  EXPECT_GE(biases(apart[0]), biases(whole[0]) + 3);
  EXPECT_GT(apart[0].size(), whole[0].size() + 3);
}

}  // namespace
}  // namespace ringlet::train
