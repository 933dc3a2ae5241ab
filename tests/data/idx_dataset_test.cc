#include "data/idx_dataset.h"

#include <gtest/gtest.h>

#include "base/data_error.h"
#include "tests/data/idx_files.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;

using testing::gzip;
using testing::idx;
using testing::idx_header;
using testing::message_of;
using testing::says;
using testing::write_file;

class IdxDirectory : public ::testing::Test {
 protected:
  IdxDirectory() { testing::write_small_set(directory_.path()); }
  std::string error() {
    return message_of<DataError>([&] { load_idx_directory(directory_.path()); });
  }
  testing::TemporaryDirectory directory_;
};

TEST_F(IdxDirectory, LoadsBothSplits) {
  const Splits splits = load_idx_directory(directory_.path());
  EXPECT_EQ(splits.train->size(), 20);
  EXPECT_EQ(splits.test->size(), 10);
  EXPECT_EQ(splits.train->height(), 4);
  EXPECT_EQ(splits.train->width(), 5);
  EXPECT_EQ(splits.train->channels(), 1);
  EXPECT_EQ(splits.train->target_values(), 10);
  EXPECT_EQ(splits.train->targets()[13], 3);
  EXPECT_EQ(splits.train->image(3)[2], 62);
  EXPECT_EQ(splits.test->image(0)[8], 1);
}

TEST_F(IdxDirectory, FindsOtherSpellings) {
  fs::rename(directory_ / "train-images-idx3-ubyte", directory_ / "train-images.idx3-ubyte");
  fs::remove(directory_ / "t10k-labels-idx1-ubyte");
  write_file(directory_ / "t10k-labels-idx1-ubyte.gz", gzip(idx({10}, 10)));
  EXPECT_TRUE(has_idx_files(directory_.path()));
  EXPECT_EQ(load_idx_directory(directory_.path()).test->targets()[9], 9);
}

TEST_F(IdxDirectory, FindsThemWhereTorchvisionPutsThem) {
  const testing::TemporaryDirectory root;
  for (const char* folder : {"raw", "MNIST/raw"}) {
    const fs::path directory = root / folder;
    fs::create_directories(directory);
    testing::write_small_set(directory);
    EXPECT_FALSE(has_idx_files(root.path()));
    EXPECT_EQ(load_idx_directory(root.path()).train->size(), 20) << folder;
    fs::remove_all(directory);
  }
  for (const char* folder : {"FashionMNIST/raw", "MNIST/raw"}) {
    fs::create_directories(root / folder);
    testing::write_small_set(root / folder);
  }
  EXPECT_EQ(all_idx_files(root.path()).size(), 2U);
  EXPECT_TRUE(says(message_of<DataError>([&] { load_idx_directory(root.path()); }),
                   {"several data sets: ", "/MNIST/raw, ", "/FashionMNIST/raw; name a folder"}));
}

TEST_F(IdxDirectory, FindsEmnistsNames) {
  for (const auto& [ours, theirs] : {std::pair{"t10k", "test"}, {"train", "train"}}) {
    for (const char* kind : {"-images-idx3-ubyte", "-labels-idx1-ubyte"}) {
      fs::rename(directory_ / (std::string(ours) + kind),
                 directory_ / (std::string("emnist-letters-") + theirs + kind));
    }
  }
  EXPECT_TRUE(has_idx_files(directory_.path()));
  EXPECT_EQ(load_idx_directory(directory_.path()).test->size(), 10);
  testing::write_small_set(directory_.path());
  EXPECT_TRUE(says(error(), {"several data sets: ", "/emnist-letters-*; name a folder"}));
}

TEST_F(IdxDirectory, NamesEveryMissingFile) {
  fs::remove(directory_ / "train-labels-idx1-ubyte");
  fs::remove(directory_ / "t10k-images-idx3-ubyte");
  EXPECT_FALSE(has_idx_files(directory_.path()));
  EXPECT_TRUE(says(error(), {directory_.path().string(),
                             "missing train-labels-idx1-ubyte, t10k-images-idx3-ubyte"}));
}

TEST_F(IdxDirectory, NamesADirectoryThatIsNotThere) {
  EXPECT_TRUE(says(message_of<DataError>([] { load_idx_directory("no/such/place"); }),
                   {"no/such/place", "no such directory"}));
}

TEST_F(IdxDirectory, RefusesCountsThatDiffer) {
  write_file(directory_ / "t10k-labels-idx1-ubyte", idx({9}, 10));
  EXPECT_TRUE(says(error(), {"t10k-labels-idx1-ubyte: expected 10 labels", "found 9"}));
}

TEST_F(IdxDirectory, RefusesImagesOfDifferentSize) {
  write_file(directory_ / "t10k-images-idx3-ubyte", idx({10, 5, 4}));
  EXPECT_TRUE(says(error(), {"t10k-images-idx3-ubyte: expected images of 4 x 5", "found 5 x 4"}));
}

TEST_F(IdxDirectory, TakesMoreClassesFromTheTrainingLabels) {
  write_file(directory_ / "train-labels-idx1-ubyte", idx({20}, 20));
  EXPECT_EQ(load_idx_directory(directory_.path()).test->target_values(), 20);
}

TEST_F(IdxDirectory, RefusesOneDamagedLabelAmongTenClasses) {
  std::string labels = idx({20}, 10);
  labels[8 + 17] = '\xc8';
  write_file(directory_ / "train-labels-idx1-ubyte", labels);
  EXPECT_TRUE(says(error(), {"train-labels-idx1-ubyte: sample 17 has the label 200",
                             "no sample has 10 to 199", "--allow-empty-classes"}));
  const Splits allowed = load_idx_directory(directory_.path(), true);
  EXPECT_EQ(allowed.train->target_values(), 201);
  EXPECT_TRUE(says(allowed.train->description(), {"201 classes (no sample of 10 to 199), hash"}));
}

TEST_F(IdxDirectory, NamesClassesWithoutASampleAboveTheLargestLabel) {
  write_file(directory_ / "train-labels-idx1-ubyte", idx({20}, 4));
  write_file(directory_ / "t10k-labels-idx1-ubyte", idx({10}, 9));
  const Splits splits = load_idx_directory(directory_.path());
  EXPECT_TRUE(says(splits.train->description(), {"10 classes (no sample of 4 to 9)"}));
  EXPECT_TRUE(says(splits.test->description(), {"10 classes (no sample of 9)"}));
}

TEST_F(IdxDirectory, RefusesTestLabelsOutsideTheClasses) {
  std::string labels = idx({10}, 10);
  labels[8 + 4] = 10;
  write_file(directory_ / "t10k-labels-idx1-ubyte", labels);
  EXPECT_TRUE(says(error(),
                   {"t10k-labels-idx1-ubyte: label 10 of sample 4", "outside the classes 0 to 9"}));
}

TEST_F(IdxDirectory, RefusesAnEmptySet) {
  write_file(directory_ / "train-images-idx3-ubyte", idx({0, 4, 5}));
  write_file(directory_ / "train-labels-idx1-ubyte", idx({0}));
  EXPECT_TRUE(says(error(), {directory_.path().string(), "no samples"}));
}

TEST_F(IdxDirectory, ReportsADamagedTestFileWhileTrainingDataLoads) {
  write_file(directory_ / "t10k-images-idx3-ubyte", idx_header(8, {10, 4, 5}) + "abc");
  EXPECT_TRUE(says(error(), {"t10k-images-idx3-ubyte: truncated: expected 216 bytes, found 19"}));
}

}  // namespace
}  // namespace ringlet::data
