#include <gtest/gtest.h>

#include <cmath>

#include "base/data_error.h"
#include "data/memory_dataset.h"
#include "tests/support/files.h"
#include "tests/support/read_dataset.h"

namespace ringlet::data {
namespace {

using testing::message_of;
using testing::says;

const DatasetInfo kInfo{"tiny/train", 1, 2, 2, {"a", "b", "c"}};
const std::vector<std::uint8_t> kImages{0, 255, 10, 20, 30, 40, 50, 60};
const std::vector<std::int32_t> kLabels{2, 0};

std::string error(const DatasetInfo& info, std::vector<std::uint8_t> images,
                  std::vector<std::int32_t> labels) {
  return message_of<DataError>([&] { MemoryDataset(info, std::move(images), std::move(labels)); });
}

TEST(Dataset, KnowsItsSizes) {
  const MemoryDataset set(kInfo, kImages, kLabels);
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set.pixels(), 4);
  EXPECT_EQ(set.target_values(), 3);
  EXPECT_EQ(set.image(1)[3], 60);
  EXPECT_TRUE(says(set.description(), {"tiny/train", "2 images of 1 x 2 x 2", "3 classes"}));
}

TEST(Dataset, NamesItsClassesWithoutASample) {
  const auto classes_of = [](std::vector<std::string> names, std::vector<std::int32_t> labels) {
    std::vector<std::uint8_t> images(labels.size());
    const MemoryDataset set({"s", 1, 1, 1, std::move(names)}, std::move(images), std::move(labels));
    const std::string text = set.description();
    return text.substr(0, text.rfind(", hash"));
  };
  EXPECT_EQ(classes_of({"hat", "cap"}, {0, 1}), "s: 2 images of 1 x 1 x 1, 2 classes");
  EXPECT_TRUE(
      says(classes_of({"hat", "cap", "tie"}, {1, 1}), {"3 classes (no sample of hat, tie)"}));
  EXPECT_TRUE(says(classes_of({"a", "b", "c", "d"}, {3}), {"4 classes (no sample of a to c)"}));
  std::vector<std::string> names;
  std::vector<std::int32_t> odd;
  for (int i = 0; i < 40; ++i) names.push_back(std::to_string(i));
  for (int i = 1; i < 40; i += 2) odd.push_back(i);
  EXPECT_TRUE(
      says(classes_of(names, odd), {"(no sample of 0, 2, 4, 6, 8, 10, 12, 14 and 12 more)"}));
}

TEST(Dataset, ComputesMeanAndDeviationOfPixels) {
  double mean = 0, variance = 0;
  for (const std::uint8_t value : kImages) mean += value / 255.0 / 8;
  for (const std::uint8_t value : kImages) variance += std::pow(value / 255.0 - mean, 2) / 8;
  const MemoryDataset set(kInfo, kImages, kLabels);
  EXPECT_NEAR(set.statistics()[0].mean, mean, 1e-12);
  EXPECT_NEAR(set.statistics()[0].deviation, std::sqrt(variance), 1e-12);
}

TEST(Dataset, StatisticsAreOfEachChannel) {
  // Planes of 9 x 1000 pixels: pieces of the one pass end within channels and within images.
  const DatasetInfo info{"colours", 3, 9, 1000, {"a"}};
  constexpr std::size_t kPlane = 9000, kSamples = 5;
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> planes[3];
  for (std::size_t i = 0; i < kSamples * 3 * kPlane; ++i) {
    const std::size_t channel = i / kPlane % 3;
    images.push_back(static_cast<std::uint8_t>(40 * channel + i * i % (17 + channel)));
    planes[channel].push_back(images.back());
  }
  const MemoryDataset set(info, images, std::vector<std::int32_t>(kSamples, 0));
  ASSERT_EQ(set.statistics().size(), 3u);
  for (std::size_t c = 0; c < 3; ++c) {
    const MemoryDataset alone({"one", 1, 9, 1000, {"a"}}, planes[c],
                              std::vector<std::int32_t>(kSamples, 0));
    EXPECT_EQ(set.statistics()[c].mean, alone.statistics()[0].mean) << c;
    EXPECT_EQ(set.statistics()[c].deviation, alone.statistics()[0].deviation) << c;
    EXPECT_EQ(set.mean()[c], static_cast<float>(set.statistics()[c].mean));
    EXPECT_EQ(set.deviation()[c], static_cast<float>(set.statistics()[c].deviation));
  }
  EXPECT_NE(set.mean()[0], set.mean()[1]);
}

TEST(Dataset, OneThatIsReadHasTheHashAndStatisticsOfTheSameDataInMemory) {
  // An image is longer than a piece of the one pass, shorter, or of no round size.
  for (const auto& [channels, side] : {std::pair{3, 90}, {1, 28}, {2, 7}}) {
    const std::size_t pixels = static_cast<std::size_t>(channels * side * side);
    std::vector<std::uint8_t> images(50 * pixels);
    for (std::size_t i = 0; i < images.size(); ++i) {
      images[i] = static_cast<std::uint8_t>(i * i / 7 + i);
    }
    const auto memory = std::make_shared<const MemoryDataset>(
        DatasetInfo{"set", channels, side, side, {"a"}}, images, std::vector<std::int32_t>(50, 0));
    const testing::ReadDataset read(memory);
    EXPECT_EQ(read.reads, 0);
    EXPECT_EQ(read.description(), memory->description());
    for (std::size_t c = 0; c < read.statistics().size(); ++c) {
      EXPECT_EQ(read.mean()[c], memory->mean()[c]);
      EXPECT_EQ(read.deviation()[c], memory->deviation()[c]);
    }
    EXPECT_EQ(read.reads, 50) << "each sample once";
    EXPECT_TRUE(read.images().empty());
    EXPECT_EQ(read.image(3), memory->image(3));
  }
}

/// Stands for photographs that would take an hour to read.
class Described final : public Dataset {
 public:
  Described() : Dataset({"described", 3, 2, 2, {"a"}}, {0}) {}
  void read(std::int64_t, std::span<std::uint8_t>) const override { throw DataError("was read"); }

 private:
  PixelContent survey(std::uint64_t seed) const override {
    return {seed + 1, {{0.485, 0.229}, {0.456, 0.224}, {0.406, 0.225}}};
  }
};

TEST(Dataset, MaySayItsStatisticsItself) {
  const Described set;
  EXPECT_EQ(set.mean(), PerChannel({0.485F, 0.456F, 0.406F}));
  EXPECT_EQ(set.deviation()[2], 0.225F);
  EXPECT_NE(set.hash(), 0u);
}

TEST(Dataset, ImagesOfOneColourHaveDeviationOne) {
  EXPECT_EQ(
      MemoryDataset(kInfo, std::vector<std::uint8_t>(8, 77), kLabels).statistics()[0].deviation,
      1.0);
}

TEST(Dataset, TheHashSeesEveryPixelLabelSizeAndClass) {
  const std::uint64_t hash = MemoryDataset(kInfo, kImages, kLabels).hash();
  EXPECT_EQ(MemoryDataset(kInfo, kImages, kLabels).hash(), hash);
  for (std::size_t i = 0; i < kImages.size(); ++i) {
    auto images = kImages;
    ++images[i];
    EXPECT_NE(MemoryDataset(kInfo, images, kLabels).hash(), hash) << i;
  }
  EXPECT_NE(MemoryDataset(kInfo, kImages, {2, 1}).hash(), hash);
  EXPECT_NE(MemoryDataset({"tiny/train", 1, 1, 4, {"a", "b", "c"}}, kImages, kLabels).hash(), hash);
  EXPECT_NE(MemoryDataset({"tiny/train", 1, 2, 2, {"a", "b", "d"}}, kImages, kLabels).hash(), hash);
  EXPECT_EQ(MemoryDataset({"elsewhere", 1, 2, 2, {"a", "b", "c"}}, kImages, kLabels).hash(), hash);
}

TEST(Dataset, TheHashSeesAByteDeepInside) {
  std::vector<std::uint8_t> images(100'000, 3);
  const std::vector<std::int32_t> labels(25'000, 1);
  const std::uint64_t hash = MemoryDataset(kInfo, images, labels).hash();
  for (const std::size_t at : {0, 1, 16'383, 16'384, 50'000, 99'999}) {
    images[at] ^= 0x80;
    EXPECT_NE(MemoryDataset(kInfo, images, labels).hash(), hash) << at;
    images[at] ^= 0x80;
  }
}

TEST(Dataset, RefusesLabelsOutsideTheClasses) {
  EXPECT_TRUE(says(error(kInfo, kImages, {0, 3}),
                   {"tiny/train", "label 3 of sample 1", "outside the classes 0 to 2"}));
  EXPECT_TRUE(says(error(kInfo, kImages, {-1, 0}), {"label -1 of sample 0"}));
}

TEST(Dataset, HasNoSamplesBesideItsOwn) {
  const MemoryDataset set(kInfo, kImages, {0, 1});
  for (const std::int64_t index : {std::int64_t{-1}, std::int64_t{2}}) {
    EXPECT_TRUE(says(message_of<DataError>([&] { (void)set.image(index); }), {"no sample", "2"}));
    std::vector<std::uint8_t> out(4);
    EXPECT_TRUE(says(message_of<DataError>([&] { set.read(index, out); }), {"no sample", "2"}));
  }
}

TEST(Dataset, RefusesCountsThatDiffer) {
  EXPECT_TRUE(says(error(kInfo, kImages, {0}), {"tiny/train", "8 bytes of pixels for 1 images"}));
}

TEST(Dataset, RefusesNoSamplesAndNoPixels) {
  EXPECT_TRUE(says(error(kInfo, {}, {}), {"tiny/train", "no samples"}));
  EXPECT_TRUE(says(error({"flat", 1, 0, 2, {"a"}}, {}, {0}), {"flat", "no pixels"}));
  constexpr std::int64_t kMany = std::int64_t{1} << 32;  // squared, a product of nothing
  EXPECT_TRUE(says(error({"huge", 1, kMany, kMany, {"a"}}, {}, {0}), {"huge", "than any memory"}));
  EXPECT_TRUE(says(error({"deep", kMany, kMany, 1, {"a"}}, {}, {0}), {"deep", "than any memory"}));
}

}  // namespace
}  // namespace ringlet::data
