// Augmentation: torchvision's distributions, and for given draws the pixels one by one.
#include "data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include "base/data_error.h"
#include "data/images/resample.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::data {
namespace {

using ImageBytes = std::vector<std::uint8_t>;

ImageBytes numbered_image(std::int64_t channels, std::int64_t height, std::int64_t width) {
  ImageBytes image(static_cast<std::size_t>(channels * height * width));
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(i * 31 + 1);
  return image;
}

ImageBytes varied_image(const ImageBytes& image, std::int64_t channels, std::int64_t height,
                        std::int64_t width, const Variation& variation) {
  ImageBytes out(image.size(), 0xEE);
  vary(image, channels, height, width, variation, out);
  return out;
}

TEST(Augment, HasNames) {
  for (const std::string& name : augment_names()) EXPECT_EQ(name_of(parse_augment(name)), name);
  EXPECT_TRUE(testing::says(testing::message_of<DataError>([] { parse_augment("mixup"); }),
                            {"mixup", "crop-flip"}));
}

TEST(Augment, FlipsOrNot) {
  const ImageBytes image = numbered_image(3, 4, 5);
  ImageBytes mirrored(image);
  for (std::size_t row = 0; row < 12; ++row) {
    std::reverse(mirrored.begin() + static_cast<std::ptrdiff_t>(row * 5),
                 mirrored.begin() + static_cast<std::ptrdiff_t>(row * 5 + 5));
  }
  int flips = 0;
  constexpr int kTries = 4000;
  for (int i = 0; i < kTries; ++i) {
    const ImageBytes out =
        varied_image(image, 3, 4, 5, {Augment::flip, static_cast<std::uint64_t>(i)});
    flips += out == mirrored ? 1 : 0;
    ASSERT_TRUE(out == image || out == mirrored);
  }
  EXPECT_NEAR(flips, kTries / 2, 4 * std::sqrt(kTries / 4.0));
}

TEST(Augment, PadsWithBlackAndCuts) {
  constexpr int kSide = 16, kPad = 2;  // an eighth
  const ImageBytes image = numbered_image(2, kSide, kSide);
  std::set<std::array<int, 3>> seen;
  for (std::uint64_t key = 0; key < 600; ++key) {
    Random random(key);
    const Cut cut = draw_crop_flip(kSide, kSide, random);
    ASSERT_LE(std::abs(cut.box.top), kPad);
    ASSERT_LE(std::abs(cut.box.left), kPad);
    seen.insert({cut.box.top, cut.box.left, cut.mirrored ? 1 : 0});
    const ImageBytes out = varied_image(image, 2, kSide, kSide, {Augment::crop_flip, key});
    for (int c = 0; c < 2; ++c) {
      for (int y = 0; y < kSide; ++y) {
        for (int x = 0; x < kSide; ++x) {
          const int row = y + cut.box.top;
          const int column = (cut.mirrored ? kSide - 1 - x : x) + cut.box.left;
          const bool inside = row >= 0 && row < kSide && column >= 0 && column < kSide;
          const auto at = [&](int yy, int xx) {
            return static_cast<std::size_t>((c * kSide + yy) * kSide + xx);
          };
          ASSERT_EQ(out[at(y, x)], inside ? image[at(row, column)] : 0) << key;
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 5U * 5U * 2U);  // all there are
}

TEST(Augment, ResizesARandomPart) {
  const ImageBytes image = numbered_image(1, 20, 30);
  for (std::uint64_t key = 0; key < 20; ++key) {
    Random random(key);
    const Cut cut = draw_random_resized_crop(30, 20, random);
    ImageBytes rgbx(image.size() * 4);
    for (std::size_t i = 0; i < image.size(); ++i) rgbx[4 * i] = image[i];
    ImageBytes expected(image.size());
    Resampler().resize(RgbxView{rgbx.data(), 30, 20, 120}.cropped(cut.box), 30, 20, {0, 0, 30, 20},
                       {expected.data(), 1, cut.mirrored});
    EXPECT_EQ(varied_image(image, 1, 20, 30, {Augment::random_resized_crop, key}), expected);
  }
  const ImageBytes five = numbered_image(5, 4, 4);
  EXPECT_TRUE(testing::says(testing::message_of<DataError>([&] {
                              varied_image(five, 5, 4, 4, {Augment::random_resized_crop, 1});
                            }),
                            {"at most 4 channels"}));
}

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / n)};
}

struct CropStatistics {
  int width = 0, height = 0;
  Moments area, shape, left, top;  // area: of the whole; shape: width / height; left, top: pixels
};

/// What torchvision draws: tests/oracle/crop_statistics.py.
std::vector<CropStatistics> torchvisions() {
  std::ifstream file(testing::testdata("oracle/crop_statistics.txt"));
  std::vector<CropStatistics> all;
  CropStatistics one;
  while (file >> one.width >> one.height >> one.area.mean >> one.area.deviation >> one.shape.mean >>
         one.shape.deviation >> one.left.mean >> one.left.deviation >> one.top.mean >>
         one.top.deviation) {
    all.push_back(one);
  }
  return all;
}

TEST(Augment, DrawsPartsAsTorchvisionDoes) {
  const std::vector<CropStatistics> expectations = torchvisions();
  ASSERT_EQ(expectations.size(), 3U);
  constexpr int kDraws = 40'000;
  for (const CropStatistics& expected : expectations) {
    std::vector<double> area, shape, left, top;
    for (int i = 0; i < kDraws; ++i) {
      Random random(static_cast<std::uint64_t>(i) * 7919 + 3);
      const Cut cut = draw_random_resized_crop(expected.width, expected.height, random);
      area.push_back(static_cast<double>(cut.box.width) * cut.box.height / expected.width /
                     expected.height);
      shape.push_back(static_cast<double>(cut.box.width) / cut.box.height);
      left.push_back(cut.box.left);
      top.push_back(cut.box.top);
      ASSERT_GE(cut.box.left, 0);
      ASSERT_LE(cut.box.left + cut.box.width, expected.width);
      ASSERT_GE(cut.box.top, 0);
      ASSERT_LE(cut.box.top + cut.box.height, expected.height);
    }
    const auto compare = [&](const std::vector<double>& ours, const Moments& theirs,
                             const char* what) {
      const double error = theirs.deviation / std::sqrt(static_cast<double>(kDraws));
      EXPECT_NEAR(moments(ours).mean, theirs.mean, 5 * error + 1e-9) << what << expected.width;
      EXPECT_NEAR(moments(ours).deviation, theirs.deviation, 5 * error + 1e-9)
          << what << expected.width;
    };
    compare(area, expected.area, "area");
    compare(shape, expected.shape, "shape");
    compare(left, expected.left, "left");
    compare(top, expected.top, "top");
  }
}

TEST(Augment, TakesTheMiddleWhereNoPartFits) {
  for (std::uint64_t key = 0; key < 50; ++key) {
    Random wide(key), high(key);
    EXPECT_EQ(draw_random_resized_crop(300, 4, wide).box, (Box{147, 0, 5, 4}));
    EXPECT_EQ(draw_random_resized_crop(3, 100, high).box, (Box{0, 48, 3, 4}));
  }
}

TEST(Augment, IsAFunctionOfSeedEpochAndSample) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
      for (std::int64_t index = 0; index < 50; ++index) {
        const Variation variation = variation_of({Augment::flip, seed}, epoch, index);
        EXPECT_EQ(variation.key, variation_of({Augment::flip, seed}, epoch, index).key);
        keys.insert(variation.key);
      }
    }
  }
  EXPECT_EQ(keys.size(), 4U * 10U * 50U);
}

}  // namespace
}  // namespace ringlet::data
