// What the table of stages says of memory, beside what a run's devices have been asked for.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

struct StagesCase {
  std::string model;
  int batch, stages, micro_batches;
  int test = 40;  ///< samples
  int replicas = 1;
  std::string optimizer = "sgd";
};

TrainOptions options_of(const StagesCase& of, PipelineSchedule schedule, bool recompute) {
  TrainOptions options = plain_options(of.stages * of.replicas);
  if (of.model == "normed") {
    options = normed(options);
  } else {
    options.recipe.model = of.model;
  }
  options.recipe.batch_size = of.batch;
  options.recipe.accumulate = of.micro_batches;
  options.recipe.optimizer = of.optimizer;
  if (of.optimizer != "sgd") options.recipe.momentum = 0;
  options.execution.stages = std::to_string(of.stages);
  options.execution.pipeline = schedule;
  options.execution.recompute = recompute;
  return options;
}

using Schedules = std::vector<PipelineSchedule>;

void expect_as_planned(const StagesCase& of, const Schedules& schedules = {
                                                 PipelineSchedule::naive, PipelineSchedule::gpipe,
                                                 PipelineSchedule::one_f_one_b}) {
  for (const PipelineSchedule schedule : schedules) {
    for (const bool recompute : {false, true}) {
      const RunSetup setup =
          make_run_setup(options_of(of, schedule, recompute), formula_splits(of.batch, of.test),
                         of.stages * of.replicas);
      const Outcome outcome = run(setup);
      ASSERT_EQ(std::ssize(outcome.held), of.stages * of.replicas);
      for (std::size_t rank = 0; rank < outcome.held.size(); ++rank) {
        const StageRow& row =
            setup.stages->forecast.stages[rank / static_cast<std::size_t>(of.replicas)];
        const auto planned = static_cast<double>(row.bytes());
        EXPECT_NEAR(planned / static_cast<double>(outcome.held[rank]), 1, .05)
            << fmt::format("{} by {}{}, {} micro-batches, rank {}, {}: {} planned, {} held",
                           of.model, name_of(schedule), recompute ? ", recomputed" : "",
                           of.micro_batches, rank, row.layers, row.bytes(), outcome.held[rank]);
      }
    }
  }
}

TEST(StagesMemory, OfLeNetIsAsPlanned) {
  expect_as_planned({"lenet", 256, 2, 2});
  expect_as_planned({"lenet", 256, 2, 8, 300});
  expect_as_planned({"lenet", 128, 3, 4, 40, 2});
}

TEST(StagesMemory, OfResNetsIsAsPlanned) {
  expect_as_planned({"resnet20", 64, 2, 4}, {PipelineSchedule::one_f_one_b});
  expect_as_planned({"resnet20", 64, 3, 4, 100, 1, "adamw"}, {PipelineSchedule::gpipe});
  expect_as_planned({"resnet18-cifar", 32, 2, 2, 20}, {PipelineSchedule::one_f_one_b});
}

}  // namespace
}  // namespace ringlet::train
