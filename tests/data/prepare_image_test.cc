// Pictures as a model sees them: each step by itself, and none where none is needed.
#include "data/images/prepare_image.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/data_error.h"
#include "tests/support/files.h"
#include "tests/support/pictures.h"

namespace ringlet::data {
namespace {

using testing::gradient_image;

constexpr ImageTarget kDark{.channels = 1, .height = 28, .width = 28, .background = 0.01};

/// One colour everywhere.
Image flat(int width, int height, const std::vector<std::uint8_t>& colour) {
  Image image{width, height, static_cast<int>(colour.size()), {}};
  for (int i = 0; i < width * height; ++i) {
    image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
  }
  return image;
}

/// A square of `inner` in the middle of `outer`, grey.
Image framed(int side, std::uint8_t outer, std::uint8_t inner) {
  Image image = flat(side, side, {outer});
  for (int y = side / 4; y < side * 3 / 4; ++y) {
    for (int x = side / 4; x < side * 3 / 4; ++x) {
      image.pixels[static_cast<std::size_t>(y * side + x)] = inner;
    }
  }
  return image;
}

std::string words(const PreparedImage& image) {
  return std::accumulate(image.steps.begin(), image.steps.end(), std::string(),
                         [](const std::string& a, const std::string& b) { return a + b + ";"; });
}

TEST(PrepareImage, OfTheModelsSizeChangesNothing) {
  Image image = framed(28, 3, 200);
  image.pixels[400] = 17;
  const PreparedImage prepared = prepare_image(image, kDark, Invert::automatic);
  EXPECT_EQ(prepared.pixels, image.pixels);
  EXPECT_EQ(words(prepared), "");
}

TEST(PrepareImage, OfDarkOnLightIsInverted) {
  const PreparedImage prepared = prepare_image(framed(28, 250, 30), kDark, Invert::automatic);
  EXPECT_TRUE(prepared.inverted);
  EXPECT_EQ(prepared.pixels[0], 5);
  EXPECT_EQ(prepared.pixels[14 * 28 + 14], 225);
  EXPECT_EQ(words(prepared), "inverted (it is dark on light, the training images light on dark);");
}

TEST(PrepareImage, GoesByWhatTheModelWasTrainedOn) {
  ImageTarget light = kDark;
  light.background = 0.9;
  EXPECT_FALSE(prepare_image(framed(28, 250, 30), light, Invert::automatic).inverted);
  EXPECT_TRUE(prepare_image(framed(28, 5, 230), light, Invert::automatic).inverted);
  EXPECT_FALSE(prepare_image(framed(28, 5, 230), kDark, Invert::automatic).inverted);
}

TEST(PrepareImage, DoesAsItIsTold) {
  EXPECT_EQ(words(prepare_image(framed(28, 5, 230), kDark, Invert::on)), "inverted as told;");
  EXPECT_EQ(words(prepare_image(framed(28, 250, 30), kDark, Invert::off)), "");
}

TEST(PrepareImage, JudgesByTheBorderAndNotByTheMiddle) {
  Image shirt = framed(28, 250, 0);
  for (int y = 9; y < 20; ++y) shirt.pixels[static_cast<std::size_t>(y * 28)] = 0;  // sleeves touch
  for (int y = 9; y < 20; ++y) shirt.pixels[static_cast<std::size_t>(y * 28 + 27)] = 0;
  EXPECT_TRUE(prepare_image(shirt, kDark, Invert::automatic).inverted);
}

TEST(PrepareImage, MakesColoursGreyByTheirLuma) {
  for (const auto& [colour, grey] : {std::pair<std::vector<std::uint8_t>, int>{{255, 0, 0}, 76},
                                     {{0, 255, 0}, 150},
                                     {{0, 0, 255}, 29},
                                     {{77, 77, 77}, 77}}) {
    const PreparedImage prepared = prepare_image(flat(28, 28, colour), kDark, Invert::off);
    EXPECT_EQ(prepared.pixels, std::vector<std::uint8_t>(784, static_cast<std::uint8_t>(grey)));
    EXPECT_EQ(words(prepared), "made grey;");
  }
}

TEST(PrepareImage, LaysTransparencyOnWhite) {
  EXPECT_EQ(prepare_image(flat(28, 28, {0, 0, 0, 0}), kDark, Invert::off).pixels[0], 255);
  EXPECT_EQ(prepare_image(flat(28, 28, {100, 255}), kDark, Invert::off).pixels[0], 100);
  EXPECT_EQ(prepare_image(flat(28, 28, {0, 51}), kDark, Invert::off).pixels[0], 204);
  EXPECT_EQ(words(prepare_image(flat(28, 28, {0, 51}), kDark, Invert::off)),
            "laid on white where it is transparent;");
  EXPECT_EQ(words(prepare_image(flat(28, 28, {9, 255}), kDark, Invert::off)), "");
}

TEST(PrepareImage, KeepsTheShapeAndPadsWithTheBorder) {
  Image tall = flat(20, 56, {40});
  for (int y = 20; y < 36; ++y) {
    for (int x = 5; x < 15; ++x) tall.pixels[static_cast<std::size_t>(y * 20 + x)] = 240;
  }
  const PreparedImage prepared = prepare_image(tall, kDark, Invert::off, false);
  EXPECT_EQ(words(prepared), "scaled to 10 x 28;padded to 28 x 28;");
  for (int y = 0; y < 28; ++y) {
    for (const int x : {0, 8, 9, 18, 19, 27}) {
      EXPECT_NEAR(prepared.pixels[static_cast<std::size_t>(y * 28 + x)], 40, 1) << y << " " << x;
    }
  }
  EXPECT_NEAR(prepared.pixels[14 * 28 + 13], 240, 2);
}

TEST(PrepareImage, ScalesBothWaysByAveraging) {
  const PreparedImage checks = [] {
    Image image{280, 280, 1, {}};
    for (int y = 0; y < 280; ++y) {
      for (int x = 0; x < 280; ++x) image.pixels.push_back((x + y) % 2 == 0 ? 0 : 200);
    }
    return prepare_image(image, kDark, Invert::off, false);
  }();
  for (const std::uint8_t value : checks.pixels) ASSERT_NEAR(value, 100, 2);

  const PreparedImage larger = prepare_image(framed(8, 10, 200), kDark, Invert::off);
  EXPECT_NEAR(larger.pixels[0], 10, 5);
  EXPECT_NEAR(larger.pixels[14 * 28 + 14], 200, 2);
}

TEST(PrepareImage, OfOnePixelWidthStillHasOne) {
  const PreparedImage prepared = prepare_image(flat(1, 5000, {90}), kDark, Invert::off, false);
  EXPECT_EQ(prepared.pixels, std::vector<std::uint8_t>(784, 90));
}

TEST(PrepareImage, StretchesTheLevelsOfAPhotograph) {
  const PreparedImage photo = prepare_image(framed(280, 190, 90), kDark, Invert::automatic);
  EXPECT_EQ(photo.pixels[0], 0);
  EXPECT_NEAR(photo.pixels[14 * 28 + 14], 255, 5);
  EXPECT_NE(words(photo).find("levels stretched"), std::string::npos) << words(photo);

  ImageTarget light = kDark;
  light.background = 0.95;
  const PreparedImage drawing = prepare_image(framed(280, 190, 90), light, Invert::automatic);
  EXPECT_EQ(drawing.pixels[0], 255);
  EXPECT_NEAR(drawing.pixels[14 * 28 + 14], 0, 5);
}

TEST(PrepareImage, LeavesLevelsThatAreRight) {
  const PreparedImage dark = prepare_image(framed(280, 15, 90), kDark, Invert::automatic);
  EXPECT_EQ(words(dark), "scaled to 28 x 28;");
  EXPECT_EQ(words(prepare_image(framed(280, 90, 200), kDark, Invert::off, false)),
            "scaled to 28 x 28;");
  EXPECT_EQ(words(prepare_image(framed(28, 90, 200), kDark, Invert::automatic)), "")
      << "an image of the model's size is the data set's own";
  for (const std::uint8_t value : prepare_image(flat(99, 99, {120}), kDark, Invert::off).pixels) {
    ASSERT_EQ(value, 0) << "an empty picture stays empty";
  }
}

TEST(PrepareImage, GivesAColourModelItsPlanes) {
  const ImageTarget colour{.channels = 3, .height = 4, .width = 6, .background = 0};
  const Image image = gradient_image(6, 4, 3);
  const PreparedImage prepared = prepare_image(image, colour, Invert::off);
  for (std::size_t i = 0; i < 24; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      ASSERT_EQ(prepared.pixels[24 * c + i], image.pixels[3 * i + c]);
    }
  }
  const PreparedImage grey = prepare_image(gradient_image(6, 4, 1), colour, Invert::off);
  EXPECT_EQ(words(grey), "grey taken for all 3 channels;");
  EXPECT_EQ(grey.pixels[5], grey.pixels[24 + 5]);

  const ImageTarget five{.channels = 5, .height = 4, .width = 6, .background = 0};
  EXPECT_TRUE(testing::says(
      testing::message_of<DataError>([&] { prepare_image(image, five, Invert::off); }),
      {"5 channels"}));
}

}  // namespace
}  // namespace ringlet::data
