// Data sets that are not what they should be: one line that names the file, exit code 1.
#include <functional>

#include "data/fashion_mnist.h"
#include "data/idx_dataset.h"
#include "tests/cli/program.h"
#include "tests/data/idx_files.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

struct Fault {
  const char* name;
  std::function<void(const fs::path&)> plant;  ///< into a folder that holds a good data set
  std::vector<std::string> parts;
};

class BadData : public ::testing::TestWithParam<Fault> {};

Outcome train_on(const fs::path& data) {
  return ringlet(
      {"train", "--model", "mlp", "--epochs", "1", "--batch-size", "8", "--data", data.string()});
}

TEST_P(BadData, IsRefusedByName) {
  const TemporaryDirectory folder;
  write_small_set(folder.path());
  GetParam().plant(folder.path());
  const Outcome outcome = train_on(folder.path());
  EXPECT_TRUE(fails_with(1, outcome, {}));
  for (const std::string& part : GetParam().parts) EXPECT_TRUE(holds(outcome.err, {part}));
}

/// Puts `bytes` instead of the training images or labels.
auto replace(const char* file, const std::string& bytes) {
  return [=](const fs::path& folder) { write_file(folder / file, bytes); };
}

const std::string kGoodImages = idx({20, 4, 5});

const Fault kFaults[] = {
    {"Truncated", replace(kImages, kGoodImages.substr(0, kGoodImages.size() - 1)), {kImages}},
    {"Oversized", replace(kImages, kGoodImages + "x"), {kImages}},
    {"Empty", replace(kImages, ""), {kImages}},
    {"HeaderOnly", replace(kImages, kGoodImages.substr(0, 6)), {kImages}},
    {"NotIdx", replace(kImages, "hello, this is no IDX file"), {kImages}},
    {"OtherType",
     replace(kImages, idx_header(0x0D, {20, 4, 5}) + std::string(1600, '\0')),
     {kImages}},
    {"OtherRank", replace(kImages, idx({20, 20})), {kImages}},
    {"LabelsForImages", replace(kImages, idx({20}, 10)), {kImages}},
    {"CountsDiffer", replace(kLabels, idx({19}, 10)), {kLabels, "20", "19"}},
    {"OneLabelDamaged",
     replace(kLabels, idx({20}, 10).replace(8 + 17, 1, "\xc8")),
     {kLabels, "sample 17 has the label 200", "no sample has 10 to 199", "--allow-empty-classes"}},
    {"TestLabelOutside",
     replace("t10k-labels-idx1-ubyte", idx_header(8, {10}) + std::string(10, '\x0b')),
     {"t10k-labels-idx1-ubyte", "label 11", "0 to 9"}},
    {"OtherImageSize",
     replace("t10k-images-idx3-ubyte", idx({10, 5, 4})),
     {"t10k-images-idx3-ubyte", "4 x 5", "5 x 4"}},
    {"GzipBreaksOff",
     [](const fs::path& folder) {
       const std::string whole = gzip(kGoodImages);
       fs::remove(folder / kImages);
       write_file(folder / (std::string(kImages) + ".gz"), whole.substr(0, whole.size() / 2));
     },
     {"train-images-idx3-ubyte.gz"}},
    {"GzipThatIsNone",
     [](const fs::path& folder) {
       fs::remove(folder / kImages);
       write_file(folder / (std::string(kImages) + ".gz"), "no gzip at all");
     },
     {"train-images-idx3-ubyte.gz"}},
    {"MissingFile",
     [](const fs::path& folder) { fs::remove(folder / kLabels); },
     {"missing", kLabels}},
};

INSTANTIATE_TEST_SUITE_P(Data, BadData, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

TEST(OwnData, InAFolderTrains) {
  const TemporaryDirectory folder;
  write_small_set(folder.path());
  const Outcome outcome = train_on(folder.path());
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"20 images of 1 x 4 x 5"}));
}

TEST(OwnData, MayLeaveClassesOutWhereThatIsAllowed) {
  const TemporaryDirectory folder;
  const fs::path data = folder / "data";
  fs::create_directory(data);
  write_small_set(data);
  write_file(data / kLabels, idx({20}, 10).replace(8 + 17, 1, "\xc8"));
  const std::string out = folder / "run";
  const Outcome trained = ringlet({"train", "--model", "mlp", "--epochs", "2", "--max-steps", "1",
                                   "--data", data.string(), "--allow-empty-classes", "--out", out});
  ASSERT_TRUE(succeeds(trained));
  EXPECT_TRUE(holds(trained.out, {"201 classes (no sample of 10 to 199)"}));
  EXPECT_TRUE(succeeds(ringlet({"train", "--resume", out}))) << "the run has allowed it";
  EXPECT_TRUE(succeeds(ringlet({"eval", "--checkpoint", out})));
}

TEST(IdxFolder, MayMoveBetweenTwoStarts) {
  const TemporaryDirectory folder;
  const auto data = folder / "data", moved = folder / "elsewhere";
  fs::create_directory(data);
  write_small_set(data);
  const std::string out = folder / "run", page = folder / "page.html";
  ASSERT_TRUE(succeeds(ringlet({"train", "--model", "mlp", "--epochs", "2", "--max-steps", "1",
                                "--batch-size", "8", "--data", data, "--out", out})));
  fs::rename(data, moved);
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--resume", out}), {"which is not here", "--data"}));
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--resume", out, "--data", "synthetic"}),
                         {"contradicts --data synthetic"}));
  EXPECT_TRUE(succeeds(ringlet({"train", "--resume", out, "--data", moved})));
  fs::rename(moved, data);
  const Outcome evaluated = ringlet({"eval", "--checkpoint", out, "--data", data});
  ASSERT_TRUE(succeeds(evaluated));
  EXPECT_EQ(evaluated.out.find("other data"), std::string::npos);
  ASSERT_TRUE(succeeds(ringlet({"report", out, "--data-dir", data, "--out", page})));
  EXPECT_EQ(read_file(page).find("Not known here"), std::string::npos);
  write_file(data / "t10k-labels-idx1-ubyte", idx({10}, 9));
  const Outcome other = ringlet({"eval", "--checkpoint", out, "--data", data});
  ASSERT_TRUE(succeeds(other));
  EXPECT_TRUE(holds(other.out, {"other data than the run's"}));
}

TEST(FashionMnist, NeedsItsFolderOnce) {
  const auto directories = data::fashion_mnist_directories();
  const auto found = std::find_if(directories.begin(), directories.end(), data::has_idx_files);
  if (found == directories.end()) GTEST_SKIP() << "Fashion-MNIST is not on this machine";
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet({"train", "--model", "mlp", "--max-steps", "1", "--out", out,
                                "--data-dir", found->string()})));
  const ProgramOptions elsewhere{.environment = {{"RINGLET_DATA", "/no/such"}}};
  EXPECT_TRUE(succeeds(ringlet({"train", "--resume", out, "--max-steps", "2"}, elsewhere)));
  EXPECT_TRUE(succeeds(ringlet({"eval", "--checkpoint", out}, elsewhere)));
}

TEST(FashionMnist, IsSoughtWhereTheUserSays) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--data-dir", folder.path().string()}),
                         {folder.path().string(), "--data-dir", "--data synthetic"}));
  EXPECT_TRUE(fails_with(1, ringlet({"train"}, {.environment = {{"RINGLET_DATA", "/no/such"}}}),
                         {"/no/such", "RINGLET_DATA", "dataset-fashion-mnist"}));
}

TEST(FashionMnist, IsNotTakenForAnother) {
  const TemporaryDirectory folder;
  write_small_set(folder.path());
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--data-dir", folder.path().string()}),
                         {"not Fashion-MNIST's file", "sha256"}));
}

}  // namespace
}  // namespace ringlet::testing
