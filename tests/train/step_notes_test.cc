// What `bench train --json` tells of a GPU beside speed: its first step, its captured step, and the
// engines of its convolutions. On the stand-in.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/training/training_bench.h"
#include "tests/train/runs.h"
#include "tests/train/stand_in_nodes.h"

namespace ringlet::train {
namespace {

std::ptrdiff_t count_of(const std::vector<std::string>& lines, const std::string& begin) {
  return std::count_if(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.starts_with(begin); });
}

TEST(CudaStepNotes, HaveTheFirstStepTheGraphAndTheEngines) {
  if (!on_stand_in()) GTEST_SKIP() << "the nodes are counted on the stand-in for GPUs";
  TrainOptions options = plain_options(1);
  options.recipe.model = "lenet-d2l";
  options.execution.devices = {{DeviceKind::cuda, 0}};
  options.execution.graph = true;
  options.recipe.epochs = 100;
  const RunSetup setup = make_run_setup(options, formula_splits(512), 1);  // no evaluation
  bench::DeviceNotes notes;
  bench::TrainingSpeed speed;
  const NodesOfGraphs graphs =
      nodes_of_graphs([&] { speed = bench::measure_training(setup, 3, 2, &notes); });
  EXPECT_EQ(speed.steps, 2);
  EXPECT_GT(notes.first_step_seconds, 0);
  ASSERT_EQ(graphs.size(), 1U);
  EXPECT_EQ(count_of(notes.lines, "a graph of "), 1);
  EXPECT_EQ(count_of(notes.lines, "a graph of " + std::to_string(graphs[0].size()) + " nodes"), 1);
  EXPECT_EQ(count_of(notes.lines, "conv2d_forward"), 2);
  EXPECT_EQ(count_of(notes.lines, "conv2d_backward_filter"), 2);
  EXPECT_EQ(count_of(notes.lines, "conv2d_backward_data"), 1);  // nobody wants the images'
  EXPECT_EQ(notes.lines.size(), 6U);
}

}  // namespace
}  // namespace ringlet::train
