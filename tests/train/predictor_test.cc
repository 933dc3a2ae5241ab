// The predictor computes what evaluation computes, for any way the images come to it.
#include "train/loop/predictor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/memory_limits.h"
#include "data/memory_dataset.h"
#include "kernels/cuda_devices.h"
#include "kernels/device.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "tests/train/runs.h"
#include "train/files/safetensors.h"
#include "train/recipe/models.h"
#include "train/task/classification.h"
#include "train/task/classification_logits.h"

namespace ringlet::train {
namespace {

/// A model that has learnt a little.
class Predict : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = plain_options(1);
    options_.recipe.normalize = true;
    options_.files.out = folder_.path();
    run(options_, data_);
  }
  std::vector<float> logits(const PredictorOptions& options) const {
    const auto device = open_device(DeviceId{}, {});
    return Predictor(*device, file(), options).logits(data_.test);
  }
  std::filesystem::path file() const { return folder_ / "model.safetensors"; }

  const testing::TemporaryDirectory folder_;
  const data::Splits data_ = formula_splits(128, 70);
  TrainOptions options_;
};

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-4) << i;
}

TEST_F(Predict, GivesWhatEvaluationCounts) {
  const Evaluation evaluation = evaluate(make_run_setup(options_, data_, 1), file());
  const Evaluation judged = judge(logits({}), data_.test->targets(), data_.test->target_values());
  EXPECT_EQ(judged.samples, 70);
  EXPECT_EQ(judged.right, evaluation.right);
  EXPECT_NEAR(judged.loss, evaluation.loss, 1e-5);
  const auto all = class_counts(evaluation), same = class_counts(judged);
  ASSERT_EQ(same.size(), all.size());
  for (std::size_t k = 0; k < same.size(); ++k) {
    EXPECT_EQ(same[k].right, all[k].right);
  }
}

TEST_F(Predict, IsTheSameForAnyPassAndLayout) {
  const std::vector<float> whole = logits({.batch = 250, .layout = LayoutChoice::lanes});
  expect_near(logits({.batch = 1}), whole);
  expect_near(logits({.batch = 17, .layout = LayoutChoice::lanes}), whole);
  expect_near(logits({.batch = 33, .layout = LayoutChoice::nchw}), whole);
}

TEST_F(Predict, OnAGpuTakesTheLayoutOfItsPrecision) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << survey_cuda().why_none;
  const std::vector<float> cpu = logits({});
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    const bool tf32 = precision == Precision::tf32;
    const auto device = open_device({DeviceKind::cuda, 0}, {.tf32 = tf32});
    Predictor predictor(*device, file(), {.precision = precision});
    EXPECT_EQ(predictor.layout(), precision == Precision::f32 ? Layout::nchw : Layout::nhwc);
    const std::vector<float> found = predictor.logits(data_.test);
    ASSERT_EQ(found.size(), cpu.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float rounding = 0.1F + 0.02F * std::abs(cpu[i]);
      ASSERT_NEAR(found[i], cpu[i], precision == Precision::f32 ? 1e-4F : rounding) << i;
    }
  }
}

/// What the last layer makes of the features is what the model answers.
TEST_F(Predict, FeaturesAreWhatTheLastLayerTakes) {
  const SafetensorsFile weights(file());
  const auto w = weights.f32("fc2.weight"), b = weights.f32("fc2.bias");
  const std::size_t classes = b.size(), columns = w.size() / classes;
  for (const LayoutChoice layout : {LayoutChoice::lanes, LayoutChoice::nchw}) {
    const auto device = open_device(DeviceId{}, {});
    Predictor predictor(*device, file(), {.batch = 33, .layout = layout, .features = true});
    EXPECT_EQ(predictor.width(), static_cast<std::int64_t>(columns));
    const std::vector<float> features = predictor.logits(data_.test);
    ASSERT_EQ(features.size(), 70 * columns);
    std::vector<float> answers;
    for (std::size_t n = 0; n < 70; ++n) {
      for (std::size_t k = 0; k < classes; ++k) {
        double sum = static_cast<double>(b[k]);
        for (std::size_t d = 0; d < columns; ++d) {
          sum += static_cast<double>(w[k * columns + d]) *
                 static_cast<double>(features[n * columns + d]);
        }
        answers.push_back(static_cast<float>(sum));
      }
    }
    expect_near(answers, logits({.layout = layout}));
  }
}

TEST_F(Predict, FeaturesOfAnyModelArePlainRows) {
  for (const std::string model : {"mlp", "lenet", "resnet20", "resnet18", "iresnet18"}) {
    SCOPED_TRACE(model);
    const testing::TemporaryDirectory folder;
    ModelInfo info{
        .version = "test", .model = model, .data = "formula", .output_names = {"a", "b"}};
    const bool is_small = model.starts_with("lenet") || model == "mlp";
    info.channels = is_small ? 1 : 3;
    info.height = info.width = is_small ? 28 : 32;
    const auto device = open_device(DeviceId{}, {});
    const auto layers = make_model(model, info.input());
    const nn::Registry registry = nn::register_model(*layers);
    HostState state;
    for (const auto* parameter : registry.parameters) {
      state.values.emplace_back(static_cast<std::size_t>(parameter->shape.count()), 0.01F);
    }
    for (const auto* buffer : registry.buffers) {
      state.buffers.emplace_back(static_cast<std::size_t>(buffer->shape.count()), 1.0F);
    }
    state.counters.resize(registry.counters.size());
    save_model(folder / "m", registry, state, info);
    Predictor predictor(*device, folder / "m", {.features = true});
    const auto pixels = static_cast<std::size_t>(info.channels * info.height * info.width);
    EXPECT_EQ(std::ssize(predictor.logits(std::vector<std::uint8_t>(2 * pixels, 100))),
              2 * predictor.width());
  }
}

TEST_F(Predict, TakesBytesAsItTakesADataSet) {
  const auto device = open_device(DeviceId{}, {});
  Predictor predictor(*device, file());
  EXPECT_EQ(predictor.info().output_names, data_.train->target_names());
  const std::vector<float> whole = predictor.logits(data_.test);
  EXPECT_EQ(predictor.logits(data_.test->images()), whole);
  expect_near(predictor.logits(
                  data_.test->images().first(static_cast<std::size_t>(3 * data_.test->pixels()))),
              {whole.begin(), whole.begin() + 30});
  EXPECT_TRUE(predictor.logits(std::span<const std::uint8_t>()).empty());
  EXPECT_THROW(predictor.logits(data_.test->images().first(5)), ContractError);
}

TEST_F(Predict, RefusesImagesOfAnotherSize) {
  const auto device = open_device(DeviceId{}, {});
  Predictor predictor(*device, file());
  const auto other = std::make_shared<const data::MemoryDataset>(
      data::DatasetInfo{.name = "other", .height = 2, .width = 3, .target_names = {"a"}},
      std::vector<std::uint8_t>(6), std::vector<std::int32_t>{0});
  EXPECT_TRUE(testing::says(testing::message_of<ContractError>([&] { predictor.logits(other); }),
                            {"other", "1 x 2 x 3"}));
}

TEST_F(Predict, NamesWhatIsMissing) {
  const auto device = open_device(DeviceId{}, {});
  Predictor predictor(*device, file());
  const auto error = [](const std::function<void()>& use) {
    return testing::message_of<ContractError>(use);
  };
  const std::shared_ptr<const data::Dataset> none;
  EXPECT_TRUE(testing::says(error([&] { predictor.logits(none); }), {"no data set"}));
  EXPECT_TRUE(
      testing::says(error([&] { predictor.each_pass(none, [](auto) {}); }), {"no data set"}));
  EXPECT_TRUE(testing::says(error([&] { predictor.each_pass(data_.test, {}); }), {"no function"}));
}

TEST_F(Predict, SaysHowMuchMemoryThereIsForAPass) {
  const auto device = open_device(DeviceId{}, {});
  const PredictorOptions options{.batch = std::int64_t{1} << 40};
  EXPECT_TRUE(testing::says(
      testing::message_of<OutOfMemoryError>([&] { Predictor(*device, file(), options); }),
      {std::to_string(usable_memory() >> 20) + " MiB of memory; use a smaller batch"}));
}

TEST_F(Predict, RefusesAFileThatDoesNotFitOrSayWhatItIs) {
  const auto device = open_device(DeviceId{}, {});
  const std::string foreign = testing::testdata("oracle/init.safetensors");
  EXPECT_TRUE(testing::says(testing::message_of<FileError>([&] { Predictor(*device, foreign); }),
                            {foreign, "does not say"}));
  ModelInfo info = read_model_info(file()).value();
  EXPECT_EQ(Predictor(*device, foreign, info).logits(data_.test).size(), 700u);
  info.model = "mlp";
  EXPECT_TRUE(
      testing::says(testing::message_of<FileError>([&] { Predictor(*device, foreign, info); }),
                    {foreign, "fc3.bias", "conv1.weight"}));
}

}  // namespace
}  // namespace ringlet::train
