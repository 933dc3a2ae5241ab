#include "base/median.h"

#include <gtest/gtest.h>

namespace ringlet {
namespace {

TEST(Median, IsTheMiddleOneOrTheMeanOfTwo) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(median_of({7}), 7);
  EXPECT_EQ(median_of({9, 1}), 5);
  EXPECT_EQ(median_of({9, 1, 2}), 2);
  EXPECT_EQ(median_of({9, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace ringlet
