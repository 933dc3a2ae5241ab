// Training with bf16 and f16 activations on a GPU: what the CPU's kernels learn, through f32, with
// the same recipe, up to the order of sums. precision_oracle_test.cc compares both with PyTorch.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/cuda_devices.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

struct Case {
  Precision precision;
  LayoutChoice layout = LayoutChoice::automatic;
  bool normed = false;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << name_of(c.precision) << (c.normed ? "_normed" : "_lenet")
       << (c.layout == LayoutChoice::nchw ? "_nchw" : "_nhwc");
}

class CudaPrecision : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << survey_cuda().why_none;
  }
  static TrainOptions on_gpu(TrainOptions options) {
    const Case& c = GetParam();
    if (c.normed) options = normed(options);
    options.recipe.precision = c.precision;
    options.recipe.batch_size = 16;
    options.recipe.lr = 0.02;
    options.execution.layout = c.layout;
    for (DeviceId& device : options.execution.devices) device = {DeviceKind::cuda, 0};
    return options;
  }
};

TEST_P(CudaPrecision, LearnsWhatTheCpuDoesThroughF32) {
  const data::Splits data = formula_splits(96);
  const TrainOptions options = on_gpu(plain_options(1));
  TrainOptions emulated = options;
  emulated.execution.devices = {DeviceId{}};
  emulated.execution.layout = LayoutChoice::automatic;
  emulated.execution.emulate_precision = true;
  TrainOptions wide = options;
  wide.recipe.precision = Precision::f32;
  const Outcome gpu = run(options, data), cpu = run(emulated, data), f32 = run(wide, data);
  ASSERT_EQ(gpu.steps.size(), 6U);
  EXPECT_NE(gpu.losses(), f32.losses());
  for (std::size_t i = 0; i < gpu.steps.size(); ++i) {
    EXPECT_NEAR(gpu.losses()[i], cpu.losses()[i], 0.01 * cpu.losses()[i]) << i;
    EXPECT_NEAR(gpu.losses()[i], f32.losses()[i], 0.03 * f32.losses()[i]) << i;
    EXPECT_FALSE(gpu.steps[i].skipped) << i;
  }
  EXPECT_NEAR(gpu.result.test.loss, cpu.result.test.loss, 0.02 * cpu.result.test.loss);
}

TEST_P(CudaPrecision, HasTheSameBitsCapturedAndNot) {
  const data::Splits data = formula_splits(88);  // the last batch is short
  TrainOptions options = on_gpu(plain_options(1));
  options.execution.deterministic = true;
  options.recipe.epochs = 2;
  const Outcome captured = run(options, data);
  options.execution.graph = false;
  EXPECT_TRUE(bytes_of(captured.state) == bytes_of(run(options, data).state));
}

TEST_P(CudaPrecision, HasTheSameBitsForAnyReplicasInExactMode) {
  const data::Splits data = formula_splits(64);
  const auto bits_of = [&](int replicas) {
    return bytes_of(run(on_gpu(exact_options(replicas)), data).state);
  };
  const std::string one = bits_of(1);
  EXPECT_TRUE(bits_of(2) == one);
  EXPECT_TRUE(bits_of(4) == one);
}

// A scale that is too large breaks gradients by itself. The steps of a captured graph are then
// skipped by what the device finds, until it fits.
TEST_P(CudaPrecision, ACapturedStepIsSkippedWhereItBreaks) {
  if (GetParam().precision != Precision::f16) GTEST_SKIP() << "bf16 has no scale";
  const data::Splits data = formula_splits(16 * 12);
  TrainOptions options = on_gpu(plain_options(1));
  options.execution.deterministic = true;  // some of cuDNN's engines add in the order of arrival
  const auto outcome_of = [&](bool graph) {
    options.execution.graph = graph;
    return run(make_run_setup(options, data, 1), {},
               [](TrainLoop& loop, Device&, int) { loop.set_loss_scale({.scale = 0x1p26}); });
  };
  const Outcome captured = outcome_of(true), launched = outcome_of(false);
  ASSERT_EQ(captured.steps.size(), 12U);
  int skipped = 0;
  for (std::size_t i = 0; i < captured.steps.size(); ++i) {
    const StepReport& step = captured.steps[i];
    EXPECT_EQ(step.skipped, launched.steps[i].skipped) << i;
    EXPECT_EQ(step.loss_scale, launched.steps[i].loss_scale) << i;
    skipped += step.skipped ? 1 : 0;
    if (i > 0 && captured.steps[i - 1].skipped) {
      EXPECT_EQ(step.loss_scale, captured.steps[i - 1].loss_scale / 2) << i;
    }
  }
  EXPECT_GE(skipped, 3) << "two steps are eager, the others a graph";
  EXPECT_TRUE(captured.steps.front().skipped);
  EXPECT_FALSE(captured.steps.back().skipped);
  EXPECT_EQ(captured.steps.back().loss_scale, std::ldexp(1.0, 26 - skipped));
  EXPECT_TRUE(bytes_of(captured.state) == bytes_of(launched.state));
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaPrecision,
                         ::testing::Values(Case{Precision::bf16}, Case{Precision::f16},
                                           Case{Precision::bf16, LayoutChoice::nchw},
                                           Case{Precision::bf16, LayoutChoice::automatic, true},
                                           Case{Precision::f16, LayoutChoice::automatic, true},
                                           Case{Precision::f16, LayoutChoice::nchw, true}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace ringlet::train
