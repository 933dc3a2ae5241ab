// --init NAME: weights in the caches of PyTorch's programs, by the model's name.
#include "train/files/published_weights.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/files/file_error.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::train {
namespace {

namespace fs = std::filesystem;
using testing::message_of;
using testing::says;
using testing::write_file;

const std::string kSum =
    "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c";  // SHA-256 of "weights"

// NOLINTBEGIN(concurrency-mt-unsafe): one thread is here
class PublishedWeights : public ::testing::Test {
 protected:
  PublishedWeights() {
    for (const char* name : {"TORCH_HOME", "HF_HOME", "HF_HUB_CACHE"}) ::unsetenv(name);
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  fs::path put(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_ / name).parent_path());
    write_file(folder_ / name, bytes);
    return folder_ / name;
  }
  static std::string error_of(const std::string& name) {
    return message_of<FileError>([&] { find_weights(name); });
  }
  testing::TemporaryDirectory folder_;
};

TEST_F(PublishedWeights, OfTorchAreFoundByNameAndTheirSumIsCompared) {
  const std::string eight = kSum.substr(0, 8);
  const fs::path file = put("torch/hub/checkpoints/resnet18-" + eight + ".pth", "weights");
  put("torch/hub/checkpoints/resnet18-notes.pth", "no sum in its name");
  EXPECT_EQ(find_weights("resnet18"), file);
  write_file(file, "others");
  EXPECT_TRUE(says(error_of("resnet18"), {file.string() + ": its SHA-256 begins with ",
                                          "its name says " + eight, "fetch it again"}));
  ::setenv("TORCH_HOME", (folder_ / "elsewhere").c_str(), 1);
  const fs::path other = put("elsewhere/hub/checkpoints/resnet18-" + kSum + ".pth", "weights");
  EXPECT_EQ(find_weights("resnet18"), other);
}

TEST_F(PublishedWeights, OfTimmAreFoundInTheSnapshotThatIsTheNewest) {
  const std::string repository = "huggingface/hub/models--timm--resnet34.a1_in1k/";
  put("huggingface/hub/models--timm--resnet34d.ra2/snapshots/a/model.safetensors", "another's");
  put(repository + "snapshots/a/model.safetensors", "older");
  const fs::path blob = put(repository + "blobs/" + kSum, "weights");
  const fs::path file = folder_ / (repository + "snapshots/b/model.safetensors");
  fs::create_directories(file.parent_path());
  fs::create_symlink("../../blobs/" + kSum, file);
  EXPECT_EQ(find_weights("resnet34"), folder_ / (repository + "snapshots/a/model.safetensors"));
  put(repository + "refs/main", "b");
  EXPECT_EQ(find_weights("resnet34"), file);
  write_file(blob, "others");
  EXPECT_TRUE(says(error_of("resnet34"), {"its name says " + kSum}));
  ::setenv("HF_HOME", (folder_ / "home").c_str(), 1);
  EXPECT_TRUE(says(error_of("resnet34"), {(folder_ / "home/hub").string()}));
  ::setenv("HF_HUB_CACHE", (folder_ / "hub").c_str(), 1);
  const fs::path named = put("hub/models--timm--resnet34/snapshots/c/model.safetensors", "x");
  EXPECT_EQ(find_weights("resnet34"), named);
}

TEST_F(PublishedWeights, ThatAreNotThereAreSaidToBeHad) {
  EXPECT_TRUE(
      says(error_of("resnet18"),
           {"--init resnet18: there is no such file, and no weights of that name in",
            (folder_ / "torch/hub/checkpoints").string(), (folder_ / "huggingface/hub").string(),
            "fetch https://download.pytorch.org/models/resnet18-f37072fd.pth",
            "its SHA-256 begins with f37072fd", "or name the file itself"}));
  EXPECT_TRUE(says(error_of("resnet50"), {"resnet50-11ad3fa6.pth"}));
  EXPECT_TRUE(says(error_of("lenet"), {"none that are published are known"}));
}

TEST_F(PublishedWeights, AFileOrAnotherNameIsItself) {
  EXPECT_EQ(find_weights("resnet999"), "resnet999");
  EXPECT_EQ(find_weights("runs/resnet18"), "runs/resnet18");
  const fs::path before = fs::current_path();
  put("resnet18", "a file");
  fs::current_path(folder_.path());
  EXPECT_EQ(find_weights("resnet18"), "resnet18");
  fs::current_path(before);
}

// NOLINTEND(concurrency-mt-unsafe)

}  // namespace
}  // namespace ringlet::train
