// PyTorch loads the weights that Ringlet wrote, and finds the same loss and accuracy. Ringlet loads
// those that PyTorch wrote.
#include <cstdio>
#include <random>

#include "tests/cli/python.h"
#include "tests/data/idx_files.h"

namespace ringlet::testing {
namespace {

/// `count` images of noise with labels.
void write_noise(const std::filesystem::path& folder, const std::string& split, int count) {
  std::mt19937 draw(7);
  std::string images = idx_header(8, {static_cast<std::uint32_t>(count), 28, 28});
  for (int i = 0; i < count * 28 * 28; ++i) images += static_cast<char>(draw() % 256);
  std::string labels = idx_header(8, {static_cast<std::uint32_t>(count)});
  for (int i = 0; i < count; ++i) labels += static_cast<char>(draw() % 10);
  write_file(folder / (split + "-images-idx3-ubyte"), images);
  write_file(folder / (split + "-labels-idx1-ubyte"), labels);
}

TEST(PyTorch, AgreesWithEval) {
  const TemporaryDirectory folder;
  write_noise(folder.path(), "train", 64);
  write_noise(folder.path(), "t10k", 96);
  const std::string data = folder.path().string();
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet({"train", "--no-normalize", "--data", data, "--epochs", "2",
                                "--batch-size", "16", "--out", out})));
  const Outcome ours = ringlet({"eval", "--no-normalize", "--data", data, "--checkpoint", out});
  ASSERT_TRUE(succeeds(ours));

  const PythonOutcome theirs =
      run_python("/usr/bin/python3", "torch_eval.py", {out + "/model.safetensors", data});
  if (theirs.lacks_a_module()) GTEST_SKIP() << theirs.output;
  ASSERT_EQ(theirs.code, 0) << theirs.output;

  int right = 0;
  double loss = 0;
  ASSERT_EQ(std::sscanf(theirs.output.c_str(), "right %d loss %lf", &right, &loss), 2)
      << theirs.output;
  int our_right = -1;
  int samples = 0;
  double accuracy = 0;
  double our_loss = 0;
  ASSERT_EQ(std::sscanf(ours.out.c_str() + ours.out.find("\nall "), " all %d %d %lf %% loss %lf",
                        &our_right, &samples, &accuracy, &our_loss),
            4)
      << ours.out;
  EXPECT_EQ(samples, 96);
  EXPECT_EQ(our_right, right);
  EXPECT_NEAR(our_loss, loss, 1e-4);
}

/// What eval says of a model, but for the line that names its file.
std::string evaluated(const std::string& data, const std::string& model) {
  const Outcome outcome = ringlet(
      {"eval", "--no-normalize", "--model", "lenet", "--data", data, "--checkpoint", model});
  EXPECT_EQ(outcome.code, 0) << outcome.err;  // a warning may come of doubles
  return outcome.out.substr(std::min(outcome.out.find("\nclass"), outcome.out.size()));
}

TEST(PyTorch, WritesWhatIsReadAsItIs) {
  const TemporaryDirectory folder;
  write_noise(folder.path(), "train", 64);
  write_noise(folder.path(), "t10k", 96);
  const std::string data = folder.path().string();
  ASSERT_TRUE(succeeds(ringlet({"train", "--no-normalize", "--data", data, "--epochs", "1",
                                "--batch-size", "16", "--out", folder / "run"})));
  const PythonOutcome saved = run_python("/usr/bin/python3", "torch_save.py",
                                         {(folder / "run/model.safetensors").string(), data});
  if (saved.lacks_a_module()) GTEST_SKIP() << saved.output;
  ASSERT_EQ(saved.code, 0) << saved.output;

  const std::string ours = evaluated(data, folder / "run/model.safetensors");
  ASSERT_NE(ours.find("all"), std::string::npos) << ours;
  for (const char* file :
       {"plain.pth", "parameters.pth", "checkpoint.pt", "turned.pth", "doubles.pth", "old.pth"}) {
    EXPECT_EQ(evaluated(data, folder / file), ours) << file;
  }
  const auto error = [&](const char* file) {
    return ringlet({"inspect", (folder / file).string()}).err;
  };
  EXPECT_TRUE(holds(error("whole.pth"), {"names ", "which no weights need", "state_dict() alone"}));
  EXPECT_TRUE(holds(error("script.pt"), {"TorchScript"}));

  const Outcome inspected = ringlet({"inspect", folder / "checkpoint.pt"});
  EXPECT_TRUE(holds(inspected.out, {"PyTorch's own", "state_dict", "module.conv1.weight"}));
  const Outcome begun =
      ringlet({"train", "--no-normalize", "--model", "lenet", "--data", data, "--epochs", "1",
               "--batch-size", "16", "--init", folder / "checkpoint.pt", "--no-out"});
  EXPECT_TRUE(succeeds(begun));
  EXPECT_TRUE(holds(begun.out, {"its tensors lie under 'state_dict', their names begin with "
                                "'module.', which is passed over"}));
}

}  // namespace
}  // namespace ringlet::testing
