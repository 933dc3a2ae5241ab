// The exported graph itself, where no ONNX runtime is at hand: how it normalises, and its weights.
#include "train/onnx/onnx_export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

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
