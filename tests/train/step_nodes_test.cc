// What a training step launches on a GPU: the nodes of its captured graph, counted on the stand-in
// for GPUs (tests/cuda_stand_in/stand_in.h), which runs the very dispatch.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cuda_devices.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

constexpr std::size_t kMost = 24;

bool on_stand_in() {
  const std::vector<CudaDeviceInfo> gpus = survey_cuda().devices;
  return !gpus.empty() && gpus[0].name.starts_with("stand-in");
}

/// The names of the nodes of each graph that `run` captures.
template <class Run>
std::vector<std::vector<std::string>> graphs_of(Run run) {
  const testing::TemporaryDirectory folder;
  const std::string file = (folder.path() / "nodes").string();
  setenv("RINGLET_STAND_IN_NODES", file.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  run();
  unsetenv("RINGLET_STAND_IN_NODES");  // NOLINT(concurrency-mt-unsafe)
  std::vector<std::vector<std::string>> graphs;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    graphs.emplace_back(std::istream_iterator<std::string>(words),
                        std::istream_iterator<std::string>());
  }
  return graphs;
}

TEST(StepNodes, OfLenetAreFew) {
  if (!on_stand_in()) GTEST_SKIP() << "the nodes are counted on the stand-in for GPUs";
  TrainOptions options = plain_options(1);
  options.recipe.model = "lenet-d2l";
  options.execution.devices = {{DeviceKind::cuda, 0}};
  options.execution.graph = true;
  options.max_steps = 4;
  const auto graphs = graphs_of([&] { run(options, formula_splits(256)); });
  ASSERT_FALSE(graphs.empty());
  for (const std::vector<std::string>& nodes : graphs) {
    std::string names;
    for (const std::string& node : nodes) names += node + " ";
    EXPECT_LE(nodes.size(), kMost) << names;
    EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "upload"), 0) << names;  // done before
  }
}

}  // namespace
}  // namespace ringlet::train
