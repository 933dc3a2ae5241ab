// The border's brightness counts each pixel of the edge once, and nothing else.
#include "data/border.h"

#include <gtest/gtest.h>

#include <vector>

#include "data/memory_dataset.h"

namespace ringlet::data {
namespace {

TEST(Border, IsTheMeanOfTheEdgeOfAllChannels) {
  const std::vector<std::uint8_t> image{
      0,   51,  102, 153,  //
      204, 9,   9,   255,  //
      0,   0,   0,   51,   // channel 0
      255, 255, 255, 255,  //
      255, 77,  0,   255,  //
      255, 255, 255, 255,  // channel 1
  };
  const double first = (0 + 51 + 102 + 153 + 204 + 255 + 0 + 0 + 0 + 51) / 10.0 / 255;
  EXPECT_DOUBLE_EQ(border_brightness(image, 2, 3, 4), (first + 1) / 2);
}

TEST(Border, OfAThinImageIsAllOfIt) {
  const std::vector<std::uint8_t> line{0, 255, 0, 255};
  EXPECT_DOUBLE_EQ(border_brightness(line, 1, 1, 4), 0.5);
  EXPECT_DOUBLE_EQ(border_brightness(line, 1, 4, 1), 0.5);
  EXPECT_DOUBLE_EQ(border_brightness(line, 4, 1, 1), 0.5);
}

TEST(Border, OfASetIsTheMeanOfItsImages) {
  const MemoryDataset dataset({.name = "two", .height = 2, .width = 2, .target_names = {"a"}},
                              {0, 0, 0, 0, 255, 255, 255, 255}, {0, 0});
  EXPECT_DOUBLE_EQ(border_brightness(dataset), 0.5);
}

}  // namespace
}  // namespace ringlet::data
