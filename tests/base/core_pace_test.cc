#include "base/core_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/instruction_set.h"

namespace ringlet {
namespace {

TEST(CorePace, IsThatOfACore) {
  CorePace quickest = core_pace();
  for (int look = 0; look < 20; ++look) {
    const CorePace pace = core_pace();
    quickest = {std::min(quickest.product, pace.product), std::min(quickest.sum, pace.sum)};
  }
  // Three cycles or so, of 6 GHz or less: none is optimised away. And of a slow emulator or more.
  EXPECT_GT(quickest.product, 0.4e-9);
  EXPECT_LT(quickest.product, 1e-6);
  const bool knows = kX86 && widest_instruction_set() != InstructionSet::portable;
  EXPECT_EQ(quickest.knows_sums(), knows);
  if (knows) {
    EXPECT_LT(quickest.sum, quickest.product);  // several adders
  }
}

TEST(CorePace, TellsACoreByItselfFromAHalf) {
  const auto sums = [](double in_a_product) { return CorePace{1e-9, 1e-9 / in_a_product}; };
  // An Emerald Rapids Xeon as measured, by itself and beside another thread; Zen 2 to 4, which have
  // four adders, and Zen 5, which has six, by their makers' tables.
  for (const double whole : {11.7, 9.6, 15.0}) {
    EXPECT_FALSE(sums(whole).is_shared()) << whole;
    EXPECT_TRUE(sums(whole / 2).is_shared()) << whole;
  }
  EXPECT_DOUBLE_EQ(sums(11.7).sums_in_a_product(), 11.7);
}

TEST(CorePace, SaysNothingWhereSumsAreNotKnown) {
  const CorePace pace{.product = 1e-9};
  EXPECT_FALSE(pace.knows_sums());
  EXPECT_FALSE(pace.is_shared());
  EXPECT_EQ(pace.sums_in_a_product(), 0);
}

TEST(CoreLooks, OfSeveralGiveTheMeanOfThoseThatAreKnown) {
  EXPECT_DOUBLE_EQ(mean_share(std::vector{-1.0, 0.25, 0.75}), 0.5);
  EXPECT_DOUBLE_EQ(mean_share(std::vector{0.0}), 0);
  EXPECT_LT(mean_share(std::vector{-1.0}), 0);
  EXPECT_LT(mean_share({}), 0);
}

TEST(CoreLooks, CountThoseThatFindTheCoreShared) {
  CoreLooks looks;
  EXPECT_LT(looks.share(), 0);
  looks.take({.product = 1e-9});  // of a processor that does not tell
  EXPECT_LT(looks.share(), 0);
  for (const double sums : {11.0, 6.0, 12.0, 5.0}) looks.take({1e-9, 1e-9 / sums});
  EXPECT_EQ(looks.share(), 0.5);
  CoreLooks sum = looks;
  sum += {.looks = 4, .shared = 4};
  EXPECT_EQ(sum.share(), 0.75);
  const auto words = [](double share) {
    return shared_core_words(share, "the ranks' cores were", "their other hyper-threads",
                             "so what");
  };
  EXPECT_EQ(words(0.5),
            "the ranks' cores were shared for 50 % of the time (with what ran on their other "
            "hyper-threads): so what");
  EXPECT_EQ(words(0.1), "");
  EXPECT_EQ(words(-1), "");
}

}  // namespace
}  // namespace ringlet
