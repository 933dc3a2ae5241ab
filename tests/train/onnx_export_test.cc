// The exported graph itself, where no ONNX runtime is at hand: how it normalises, and its weights.
#include "train/onnx/onnx_export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "data/memory_dataset.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/files/safetensors.h"
#include "train/onnx/onnx.pb.h"

namespace ringlet::train {
namespace {

class OnnxExport : public ::testing::Test {
 protected:
  void SetUp() override {
    TrainOptions options = plain_options(1);
    options.recipe.normalize = true;
    options.files.out = folder_.path();
    run(options, formula_splits(64));
    ASSERT_TRUE(model_.ParseFromString(to_onnx(file(), info())));
    for (const onnx::Tensor& tensor : model_.graph().initializer()) {
      std::vector<float>& values = tensors_[tensor.name()];
      values.resize(tensor.raw_data().size() / sizeof(float));
      std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
    }
  }
  std::filesystem::path file() const { return folder_ / "model.safetensors"; }
  ModelInfo info() const { return read_model_info(file()).value(); }

  const testing::TemporaryDirectory folder_;
  onnx::Model model_;
  std::map<std::string, std::vector<float>> tensors_;
};

TEST_F(OnnxExport, NormalisesPixelsAsTheModelWasTrained) {
  const onnx::Node& scaled = model_.graph().node(0);
  const onnx::Node& normalized = model_.graph().node(1);
  EXPECT_EQ(scaled.op_type() + " " + scaled.input(0) + " " + scaled.input(1), "Mul image scale");
  EXPECT_EQ(normalized.op_type() + " " + normalized.input(1), "Add shift");
  EXPECT_EQ(normalized.input(0), scaled.output(0));
  EXPECT_EQ(model_.graph().node(2).input(0), normalized.output(0));
  const ModelInfo what = info();
  ASSERT_GT(what.mean[0], 0.1) << "or the shift would be nothing";
  for (const double pixel : {0, 1, 100, 255}) {
    EXPECT_NEAR(pixel * tensors_["scale"].at(0) + tensors_["shift"].at(0),
                (pixel / 255 - what.mean[0]) / what.deviation[0], 1e-5)
        << pixel;
  }
}

/// Sixty-four images of three channels, each brighter than the one before it.
std::shared_ptr<const data::Dataset> colours() {
  std::vector<std::uint8_t> images(64 * 3 * 784);
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i] = static_cast<std::uint8_t>(70 * (i / 784 % 3) + i * i % (50 + 10 * (i / 784 % 3)));
  }
  return std::make_shared<const data::MemoryDataset>(
      data::DatasetInfo{"colours", 3, 28, 28, {"a", "b"}}, std::move(images),
      std::vector<std::int32_t>(64, 1));
}

TEST(OnnxExportOfColours, NormalisesEachChannelByItsOwnNumbers) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = plain_options(1);
  options.recipe.normalize = true;
  options.files.out = folder.path();
  run(options, {colours(), colours()});
  const std::filesystem::path file = folder / "model.safetensors";
  const ModelInfo info = read_model_info(file).value();
  EXPECT_EQ(info.mean, colours()->mean());
  EXPECT_EQ(info.deviation, colours()->deviation());
  ASSERT_LT(info.mean[0], info.mean[2]);

  onnx::Model model;
  ASSERT_TRUE(model.ParseFromString(to_onnx(file, info)));
  for (const onnx::Tensor& tensor : model.graph().initializer()) {
    if (tensor.name() != "scale" && tensor.name() != "shift") continue;
    ASSERT_EQ(tensor.dims_size(), 3);
    EXPECT_EQ(tensor.dims(0), 3);
    float values[3];
    ASSERT_EQ(tensor.raw_data().size(), sizeof values);
    std::memcpy(values, tensor.raw_data().data(), sizeof values);
    for (std::size_t c = 0; c < 3; ++c) {
      const float wanted = tensor.name() == "scale" ? 1 / (255 * info.deviation[c])
                                                    : -info.mean[c] / info.deviation[c];
      EXPECT_NEAR(values[c], wanted, 1e-6 * std::abs(wanted)) << tensor.name() << c;
    }
  }
}

TEST_F(OnnxExport, HasTheFilesWeightsBitForBit) {
  const SafetensorsFile weights(file());
  for (const auto& entry : weights.entries()) {
    const auto expected = weights.f32(entry.spec.name);
    const std::vector<float>& actual = tensors_[entry.spec.name];
    EXPECT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin(), expected.end()))
        << entry.spec.name;
  }
  EXPECT_EQ(tensors_.size(), weights.entries().size() + 2);
}

}  // namespace
}  // namespace ringlet::train
