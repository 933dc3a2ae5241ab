// `ringlet export --onnx`: what it writes, as onnx's checker and ONNX Runtime see it.
#include "base/data_error.h"
#include "data/fashion_mnist.h"
#include "data/synthetic.h"
#include "kernels/device.h"
#include "tests/cli/program.h"
#include "tests/cli/python.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "train/loop/predictor.h"

namespace ringlet::testing {
namespace {

constexpr std::size_t kImages = 500;

/// Real images where they are installed, else drawn ones.
std::vector<std::uint8_t> some_images() {
  const auto first = [](const data::Dataset& dataset) {
    const auto images = dataset.images().first(kImages * 784);
    return std::vector<std::uint8_t>(images.begin(), images.end());
  };
  try {
    return first(*data::load_fashion_mnist({}).test);
  } catch (const DataError&) {
    return first(*data::make_synthetic({1, kImages, 1}).test);
  }
}

template <class T>
void write_values(const std::filesystem::path& file, const std::vector<T>& values) {
  write_file(file, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

class Export : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(succeeds(
        ringlet({"train", "--data", "synthetic", "--synthetic-train", "640", "--synthetic-test",
                 "64", "--model", GetParam(), "--max-steps", "5", "--out", path("run")})));
    const Outcome outcome =
        ringlet({"export", "--checkpoint", path("run"), "--onnx", path("model.onnx")});
    ASSERT_TRUE(succeeds(outcome));
    EXPECT_TRUE(
        holds(outcome.out, {GetParam() + ", trained on synthetic", "saved " + path("model.onnx"),
                            "operator set 13", "image   float [N, 1, 28, 28], pixels from 0 to 255",
                            "logits  float [N, 10]: T-shirt/top, "}));
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  const TemporaryDirectory folder_;
};

TEST_P(Export, GivesOnnxRuntimeTheSameLogits) {
  const std::vector<std::uint8_t> images = some_images();
  const auto device = open_device(DeviceId{}, {});
  train::Predictor predictor(*device, path("run/model.safetensors"));
  write_values(path("images"), images);
  write_values(path("logits"), predictor.logits(images));
  const PythonOutcome run = run_python(python_with_tools(), "onnx_run.py",
                                       {path("model.onnx"), path("images"), path("logits")});
  if (run.lacks_a_module()) GTEST_SKIP() << run.output;
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_LT(std::stod(run.output), 1e-5);
}

TEST_P(Export, IsSoundToOnnx) {
  const PythonOutcome run = run_python("/usr/bin/python3", "onnx_check.py", {path("model.onnx")});
  if (run.lacks_a_module()) GTEST_SKIP() << run.output;
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_TRUE(holds(run.output, {"13 7 ['Mul', 'Add', ", "'Gemm', 'Relu', 'Gemm']"}));
}

std::string name_of_model(const ::testing::TestParamInfo<std::string>& test) {
  return test.param == "lenet-d2l" ? "lenet_d2l" : test.param;
}

INSTANTIATE_TEST_SUITE_P(Models, Export, ::testing::Values("lenet", "lenet-d2l", "mlp"),
                         name_of_model);

// Batch norm by its running statistics, shortcuts, and the average of the whole image.
TEST(ExportOfResidualNetworks, GivesOnnxRuntimeTheSameLogits) {
  const TemporaryDirectory folder;
  const auto path = [&folder](const char* name) { return (folder / name).string(); };
  ASSERT_TRUE(succeeds(ringlet({"train", "--data", "synthetic", "--synthetic-train", "64",
                                "--synthetic-test", "8", "--model", "resnet20", "--batch-size",
                                "16", "--epochs", "1", "--out", path("run")})));
  ASSERT_TRUE(
      succeeds(ringlet({"export", "--checkpoint", path("run"), "--onnx", path("model.onnx")})));
  std::vector<std::uint8_t> images = some_images();
  images.resize(20 * 784);
  const auto device = open_device(DeviceId{}, {});
  train::Predictor predictor(*device, path("run/model.safetensors"));
  write_values(path("images"), images);
  write_values(path("logits"), predictor.logits(images));
  const PythonOutcome run = run_python(python_with_tools(), "onnx_run.py",
                                       {path("model.onnx"), path("images"), path("logits")});
  if (run.lacks_a_module()) GTEST_SKIP() << run.output;
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_LT(std::stod(run.output), 1e-4);
}

TEST(ExportCommand, NamesWhatIsWrong) {
  const TemporaryDirectory folder;
  const std::string out = (folder / "m.onnx").string();
  const std::string torch = testdata("oracle/init.safetensors");
  EXPECT_TRUE(fails_with(2, ringlet({"export", "--checkpoint", torch}), {"--onnx", "required"}));
  EXPECT_TRUE(
      fails_with(1, ringlet({"export", "--checkpoint", "/no/such", "--onnx", out}), {"/no/such"}));
  EXPECT_TRUE(fails_with(1, ringlet({"export", "--checkpoint", torch, "--onnx", "/no/such/m.onnx"}),
                         {"/no/such"}));
  EXPECT_TRUE(
      fails_with(1, ringlet({"export", "--checkpoint", torch, "--model", "mlp", "--onnx", out}),
                 {"fc3.bias"}));
  EXPECT_FALSE(std::filesystem::exists(out));
  const Outcome assumed = ringlet({"export", "--checkpoint", torch, "--onnx", out});
  EXPECT_TRUE(succeeds(assumed));
  EXPECT_TRUE(holds(assumed.out, {"does not say what it holds", "taken for lenet"}));
  const std::string before = read_file(out);
  const Arguments again{"export", "--checkpoint", torch, "--no-normalize", "--onnx", out};
  EXPECT_TRUE(fails_with(2, ringlet(again), {out, "there already", "--force"}));
  EXPECT_EQ(read_file(out), before);
  EXPECT_TRUE(succeeds(ringlet(again + Arguments{"--force"})));
  EXPECT_NE(read_file(out), before);
}

}  // namespace
}  // namespace ringlet::testing
