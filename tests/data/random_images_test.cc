// Random images: of the shape that was asked for, a pure function of seed, split and index.
#include "data/random_images.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "base/data_error.h"
#include "base/stop_request.h"
#include "data/open_dataset.h"
#include "tests/support/files.h"

namespace ringlet::data {
namespace {

using testing::message_of;
using testing::says;

TEST(RandomImages, AreWhatDataNames) {
  const Splits splits =
      open_dataset("random:3x20x12", {.synthetic_train = 300, .synthetic_test = 5});
  EXPECT_EQ(splits.train->name(), "random:3x20x12/train");
  EXPECT_EQ(splits.test->name(), "random:3x20x12/test");
  EXPECT_EQ(splits.train->size(), 300);
  EXPECT_EQ(splits.test->size(), 5);
  EXPECT_EQ(splits.train->channels(), 3);
  EXPECT_EQ(splits.train->height(), 20);
  EXPECT_EQ(splits.train->width(), 12);
  EXPECT_EQ(splits.train->target_values(), 10);
  EXPECT_EQ(splits.train->images().size(), std::size_t{300} * 720);
  const std::set<std::int32_t> labels(splits.train->targets().begin(),
                                      splits.train->targets().end());
  EXPECT_EQ(labels.size(), 10U);
  EXPECT_EQ(find_dataset("random"), nullptr);
  EXPECT_EQ(find_dataset("random:"), nullptr);
  EXPECT_EQ(find_dataset("random:x")->name, kRandomImagesName);
}

TEST(RandomImages, AreAFunctionOfSeedSplitAndIndex) {
  const RandomImagesOptions few{.train = 20, .test = 20};
  RandomImagesOptions more = few;
  more.train = 40;
  const Splits one = make_random_images("1x7x5", few), other = make_random_images("1x7x5", more);
  std::set<std::vector<std::uint8_t>> different;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(one.train->image(i), other.train->image(i));
    EXPECT_EQ(one.train->targets()[static_cast<std::size_t>(i)],
              other.train->targets()[static_cast<std::size_t>(i)]);
    different.insert(one.train->image(i));
    different.insert(one.test->image(i));
  }
  EXPECT_EQ(different.size(), 40U);
  more.seed = 2;
  const Splits seeded = make_random_images("1x7x5", more);
  EXPECT_NE(seeded.train->image(0), other.train->image(0));
  EXPECT_NE(seeded.train->hash(), other.train->hash());
  EXPECT_NE(one.train->hash(), one.test->hash());
  EXPECT_NE(one.train->hash(), make_random_images("1x5x7", few).train->hash());
  EXPECT_EQ(one.train->hash(), make_random_images("1x7x5", few).train->hash());
}

TEST(RandomImages, AreUniformToTheLastByteAsTheirStatisticsSay) {
  // 9 pixels: eight from one number, and one that is left over.
  const Splits splits = make_random_images("1x3x3", {.train = 20000, .test = 1});
  const PixelStatistics said = splits.train->statistics().at(0);
  for (std::size_t pixel = 0; pixel < 9; ++pixel) {
    double sum = 0, squares = 0;
    std::set<int> values;
    for (std::size_t i = pixel; i < splits.train->images().size(); i += 9) {
      const int value = splits.train->images()[i];
      values.insert(value);
      sum += value / 255.0;
      squares += value / 255.0 * value / 255.0;
    }
    const double mean = sum / 20000;
    EXPECT_EQ(values.size(), 256U) << pixel;
    EXPECT_NEAR(mean, said.mean, 0.01) << pixel;  // five deviations of the mean
    EXPECT_NEAR(std::sqrt(squares / 20000 - mean * mean), said.deviation, 0.005) << pixel;
  }
}

TEST(RandomImages, HaveOneNormalisationForAllChannels) {
  const Splits splits = make_random_images("3x4x4", {.train = 4, .test = 4});
  EXPECT_EQ(splits.train->statistics().size(), 3U);
  EXPECT_EQ(pixel_scales(splits.train->mean(), splits.train->deviation()).size(), 1U);
  EXPECT_EQ(pixel_scales(PerChannel({0.5F, 0.5F, 0.4F}), 0.5F).size(), 3U);
  EXPECT_EQ(pixel_scales(0.5F, PerChannel({0.5F, 0.25F})).size(), 2U);
}

TEST(RandomImages, RefuseWhatIsNoShape) {
  for (const char* text : {"3x0x3", "abc", "3", "3x4", "3x4x5x6", "3x4x5 ", " 3x4x5", "3x-4x5",
                           "3x65537x1", "3x99999999999999999999x1", "3X4X5", "x3x4", "3xx4"}) {
    EXPECT_TRUE(
        says(message_of<DataError>([&] { make_random_images(text, {.train = 1, .test = 1}); }),
             {"--data random:", text, "channels x height x width"}))
        << text;
  }
  EXPECT_EQ(make_random_images("1x65536x1", {.train = 1, .test = 1}).train->height(), 65536);
}

TEST(RandomImages, RefuseWhatFillsTheMemory) {
  EXPECT_TRUE(says(message_of<DataError>([] { make_random_images("65536x65536x65536"); }),
                   {"random:65536x65536x65536", "70000 such images need", "--synthetic-train"}));
}

TEST(RandomImages, StopWhereTheyAreAskedTo) {
  EXPECT_THROW(make_random_images("1x2x2", {.stop_requested = [] { return true; }}), Stopped);
  EXPECT_THROW(make_random_images("1x2x2", {.train = 0}), DataError);
}

}  // namespace
}  // namespace ringlet::data
