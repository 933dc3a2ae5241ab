// What several GPUs do before their first collective: run all work once, so that nothing is loaded
// or allocated later. On processors no run does it; here it is called by hand, to show that it
// changes nothing, and that nothing is left to be allocated.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/train/runs.h"
#include "train/batches/batch_source.h"
#include "train/loop/train_step.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kFull = 33, kShort = 7, kPass = 50, kShortPass = 20;
const std::vector<std::int64_t> kSteps{kFull, kShort, kFull};  // samples of a rank

/// What a rank has computed, and what it has allocated for it behind the rehearsal.
struct Trained {
  std::string bytes;
  std::vector<double> losses;
  std::int64_t allocations = 0;
};

data::BatchSchedule schedule() {
  return [](std::int64_t k) -> std::optional<data::BatchRequest> {
    const std::int64_t begin = 40 * k;
    if (k >= static_cast<std::int64_t>(kSteps.size())) return {};
    return data::BatchRequest{0, begin, begin + kSteps[static_cast<std::size_t>(k)]};
  };
}

Trained train_by_hand(DType dtype, bool rehearses) {
  TrainOptions options = plain_options(2);
  options.recipe.grad_dtype = dtype;
  options.recipe.batch_size = 2 * kFull;
  options.recipe.weight_decay = 0.01;
  const data::Splits data = formula_splits(200);
  const RunSetup setup = make_run_setup(options, data, 2);
  Trained trained;
  run_replicas(
      options.execution,
      [&](Device& device, comm::Communicator& communicator) {
        TrainStep step(device, communicator, setup.replica,
                       {.sync = {{.bucket_kb = 16}, {.grad_dtype = dtype}}, .grad_norm = true});
        const auto batches = make_batch_source(device, data.train, schedule(),
                                               {setup.loader, options.recipe.seed, false});
        if (rehearses) {
          step.rehearse({.training = {kFull, kShort},
                         .evaluation = {kPass, kShortPass},
                         .accumulates = true,
                         .position = {}});
        }
        step.replica().parameters().initialize(options.recipe.seed);
        step.broadcast_state();
        const std::int64_t allocations = device.allocations();
        std::vector<double> losses;
        for (const std::int64_t samples : kSteps) {
          step.begin({0.05, 0.9}, 2 * samples, samples, false);
          step.add(*batches->next(), {});
          step.finish_gradients();
          step.send_sums();
          const StepSums sums = step.take_sums();
          losses.push_back(sums.loss);
          losses.push_back(sums.grad_norm);
          step.update();
        }
        if (communicator.rank() != 0) return;
        trained = {bytes_of(step.download_state()), losses, device.allocations() - allocations};
        EXPECT_EQ(step.sync().steps(), static_cast<std::int64_t>(kSteps.size()));
      },
      nullptr);
  return trained;
}

TEST(Rehearsal, ChangesNoBitAndLeavesNothingToAllocate) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Trained plain = train_by_hand(dtype, false), rehearsed = train_by_hand(dtype, true);
    EXPECT_EQ(rehearsed.bytes, plain.bytes);
    EXPECT_EQ(rehearsed.losses, plain.losses);
    EXPECT_GT(plain.losses[0], 0);
    EXPECT_EQ(rehearsed.allocations, 0);
    EXPECT_GT(plain.allocations, 0);  // or the test would show nothing
  }
}

TEST(Rehearsal, PutsBackWhatItChanges) {
  const RunSetup setup = make_run_setup(plain_options(1), formula_splits(200), 1);
  run_replicas(
      setup.options.execution,
      [&](Device& device, comm::Communicator& communicator) {
        TrainStep step(device, communicator, setup.replica, {.grad_norm = true});
        step.replica().parameters().initialize(7);
        HostState state = step.download_state();
        for (HostArena& arena : state.optimizer) {
          for (std::vector<float>& tensor : arena.tensors) tensor.assign(tensor.size(), 0.5F);
        }
        step.upload_state(state);
        step.rehearse({.training = {kFull}, .evaluation = {kPass}, .position = {}});
        EXPECT_EQ(bytes_of(step.download_state()), bytes_of(state));
        const View gradients = step.replica().parameters().gradients();
        for (std::int64_t i = 0; i < gradients.count(); ++i) ASSERT_EQ(gradients.f32()[i], 0) << i;
      },
      nullptr);
}

}  // namespace
}  // namespace ringlet::train
