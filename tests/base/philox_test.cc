// Known answers of Philox4x32-10, from the test vectors published with Random123.
#include "base/philox.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ringlet {
namespace {

TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  EXPECT_EQ(philox(kAll, kAll, kAll),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformLiesInZeroToOne) {
  EXPECT_EQ(uniform01(0), 0.0F);
  EXPECT_LT(uniform01(0xFFFFFFFF), 1.0F);
  EXPECT_EQ(uniform01(0x80000000), 0.5F);
}

TEST(Philox, NormalHasItsMoments) {
  constexpr int kBlocks = 20000;
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    const PhiloxBlock words = philox(42, i, 0);
    for (const float value : {normal(words[0], words[1]), normal(words[2], words[3])}) {
      ASSERT_TRUE(std::isfinite(value));
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  const double n = 2.0 * kBlocks;
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2 / n));
  EXPECT_TRUE(std::isfinite(normal(0, 0)));
}

}  // namespace
}  // namespace ringlet
