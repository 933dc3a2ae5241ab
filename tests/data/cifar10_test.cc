// CIFAR-10's binary files, of a few records each.
#include "data/cifar10.h"

#include <gtest/gtest.h>

#include "base/data_error.h"
#include "data/open_dataset.h"
#include "tests/support/files.h"

namespace ringlet::data {
namespace {

using testing::message_of;
using testing::says;

constexpr int kRecords = 3;

class Cifar10 : public ::testing::Test {
 protected:
  Cifar10() {
    for (int i = 1; i <= 5; ++i) {
      testing::write_file(folder_ / ("data_batch_" + std::to_string(i) + ".bin"), batch(i));
    }
    testing::write_file(folder_ / "test_batch.bin", batch(6));
  }
  /// Record `r` of file `number` has the label number + r and pixels that tell them apart.
  static std::string batch(int number) {
    std::string bytes;
    for (int r = 0; r < kRecords; ++r) {
      bytes += static_cast<char>(number + r);
      for (int p = 0; p < 3072; ++p) bytes += static_cast<char>(40 * number + 9 * r + p);
    }
    return bytes;
  }
  std::string error() const {
    return message_of<DataError>([&] { load_cifar10(folder_.path(), kRecords); });
  }

  testing::TemporaryDirectory folder_;
};

TEST_F(Cifar10, IsReadFileByFile) {
  const Splits splits = load_cifar10(folder_.path(), kRecords);
  EXPECT_EQ(splits.train->size(), 15);
  EXPECT_EQ(splits.test->size(), 3);
  EXPECT_EQ(splits.train->channels(), 3);
  EXPECT_EQ(splits.train->target_names()[9], "truck");
  EXPECT_EQ(splits.train->targets()[4], 2 + 1);
  const std::vector<std::uint8_t> image = splits.train->image(4);
  for (std::size_t p = 0; p < 3072; ++p) {
    ASSERT_EQ(image[p], static_cast<std::uint8_t>(40 * 2 + 9 * 1 + p));
  }
  EXPECT_EQ(splits.test->targets()[2], 8);
}

TEST_F(Cifar10, LiesInItsOwnFolderAsWell) {
  std::filesystem::create_directory(folder_ / "cifar-10-batches-bin");
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.is_directory()) continue;
    std::filesystem::rename(entry.path(),
                            folder_ / "cifar-10-batches-bin" / entry.path().filename());
  }
  EXPECT_EQ(load_cifar10(folder_.path(), kRecords).train->size(), 15);
}

TEST_F(Cifar10, NamesWhatIsMissingOrDamaged) {
  const std::string cut = batch(3).substr(0, 5000);
  testing::write_file(folder_ / "data_batch_3.bin", cut);
  EXPECT_TRUE(says(error(), {"data_batch_3.bin", "expected 9219 bytes", "found 5000", "again"}));
  std::string wrong = batch(3);
  wrong[3073] = 10;
  testing::write_file(folder_ / "data_batch_3.bin", wrong);
  EXPECT_TRUE(says(error(), {"data_batch_3.bin", "record 1", "label 10"}));
  std::filesystem::remove(folder_ / "data_batch_3.bin");
  std::filesystem::remove(folder_ / "test_batch.bin");
  EXPECT_TRUE(says(error(), {"missing data_batch_3.bin, test_batch.bin"}));
  EXPECT_TRUE(says(message_of<DataError>([] { open_dataset("cifar-10"); }), {"--data-dir"}));
}

}  // namespace
}  // namespace ringlet::data
