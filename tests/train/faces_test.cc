// A whole iresnet18 that is trained by a loss with a margin, in each precision: on the CPU, and on
// a GPU beside it, by captured steps.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda_devices.h"
#include "tests/support/files.h"
#include "tests/train/resnet_start.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

constexpr int kSize = 16;
constexpr std::int64_t kBatch = 8;

/// Each epoch is one step, of the same images.
TrainOptions arcface(Precision precision, int steps) {
  TrainOptions options = plain_options(1);
  Recipe& recipe = options.recipe;
  recipe.model = "iresnet18";
  recipe.batch_size = kBatch;
  recipe.epochs = steps;
  recipe.lr = 0.01;
  recipe.normalize = true;
  recipe.precision = precision;
  recipe.loss = "arcface";
  recipe.scale = 8;
  recipe.embedding_size = kSize;
  options.execution.emulate_precision = precision != Precision::f32;
  return options;
}

class FacesIn : public ::testing::TestWithParam<Precision> {
 protected:
  Outcome trained(const TrainOptions& options) const {
    return run(make_run_setup(options, data_, 1), {}, [](TrainLoop& loop, Device&, int) {
      if (loop.replica().plan().activations == DType::f16) loop.set_loss_scale({.scale = 1024});
    });
  }
  static void expect_learnt(const Outcome& outcome, double most) {
    const auto losses = outcome.losses();
    EXPECT_LT(losses.back(), most * losses.front());
    for (const StepReport& step : outcome.steps) EXPECT_FALSE(step.skipped);
  }

  data::Splits data_{small_images(kBatch), small_images(1)};
};

TEST_P(FacesIn, AreLearntByIResNet) { expect_learnt(trained(arcface(GetParam(), 6)), 0.5); }

class CudaFacesIn : public FacesIn {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << survey_cuda().why_none;
  }
};

// The first step is eager, the second captured, the third launched again. What rounding does to the
// first loss is as much as it does in one pass forward; later ones are of other weights.
TEST_P(CudaFacesIn, AreLearntAsOnTheCpuByCapturedSteps) {
  TrainOptions options = arcface(GetParam(), 3);
  const Outcome cpu = trained(options);
  options.execution.devices = {{DeviceKind::cuda, 0}};
  options.execution.emulate_precision = false;
  options.execution.deterministic = GetParam() == Precision::bf16;
  const Outcome captured = trained(options);
  expect_learnt(captured, 0.9);
  const bool narrow = GetParam() != Precision::f32;
  const double most = narrow ? 0.02 : 3e-5;
  for (std::size_t i = 0; i < (narrow ? 1 : captured.steps.size()); ++i) {
    EXPECT_NEAR(captured.losses()[i], cpu.losses()[i], most * cpu.losses()[i]) << i;
  }
  if (!options.execution.deterministic) return;  // once is enough: others have f16
  options.execution.graph = false;
  EXPECT_TRUE(bytes_of(captured.state) == bytes_of(trained(options).state));
}

std::string precision_name(const ::testing::TestParamInfo<Precision>& tested) {
  return name_of(tested.param);
}
INSTANTIATE_TEST_SUITE_P(Precisions, FacesIn,
                         ::testing::Values(Precision::f32, Precision::bf16, Precision::f16),
                         precision_name);
INSTANTIATE_TEST_SUITE_P(Precisions, CudaFacesIn,
                         ::testing::Values(Precision::f32, Precision::bf16, Precision::f16),
                         precision_name);

}  // namespace
}  // namespace ringlet::train
