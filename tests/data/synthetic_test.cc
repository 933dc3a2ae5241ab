#include "data/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/data_error.h"
#include "data/fashion_mnist.h"
#include "tests/support/files.h"

namespace ringlet::data {
namespace {

using testing::message_of;
using testing::says;

bool same_sample(const Dataset& a, const Dataset& b, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  return a.targets()[at] == b.targets()[at] && a.image(index) == b.image(index);
}

TEST(Synthetic, LooksLikeFashionMnist) {
  const Splits splits = make_synthetic({.train = 50, .test = 20});
  EXPECT_EQ(splits.train->size(), 50);
  EXPECT_EQ(splits.test->size(), 20);
  EXPECT_EQ(splits.train->height(), 28);
  EXPECT_EQ(splits.train->width(), 28);
  EXPECT_EQ(splits.train->target_names(), fashion_mnist_classes());
}

TEST(Synthetic, ASampleIsAPureFunctionOfSeedSplitAndIndex) {
  const Splits few = make_synthetic({.train = 31, .test = 7, .seed = 5});
  const Splits many = make_synthetic({.train = 100, .test = 50, .seed = 5});
  for (std::int64_t i = 0; i < 31; ++i) EXPECT_TRUE(same_sample(*few.train, *many.train, i)) << i;
  for (std::int64_t i = 0; i < 7; ++i) EXPECT_TRUE(same_sample(*few.test, *many.test, i)) << i;
}

// Neither the processor nor the compiler decides in which order a garment's numbers are drawn.
TEST(Synthetic, HasTheSameBytesWhateverCompiledIt) {
  EXPECT_EQ(make_synthetic({.train = 192, .test = 1}).train->hash(), 0xaafe3ca65766f619);
}

TEST(Synthetic, SeedsAndSplitsDiffer) {
  const Splits a = make_synthetic({.train = 50, .test = 50, .seed = 1});
  const Splits b = make_synthetic({.train = 50, .test = 50, .seed = 2});
  for (std::int64_t i = 0; i < 50; ++i) {
    EXPECT_FALSE(same_sample(*a.train, *b.train, i));
    EXPECT_FALSE(same_sample(*a.train, *a.test, i));
    if (i > 0) {
      EXPECT_NE(a.train->image(0), a.train->image(i));
    }
  }
}

TEST(Synthetic, ClassesAreAboutEquallyOften) {
  const Splits splits = make_synthetic({.train = 5000, .test = 1});
  for (int label = 0; label < 10; ++label) {
    const auto labels = splits.train->targets();
    EXPECT_NEAR(std::count(labels.begin(), labels.end(), label), 500, 110) << label;
  }
}

/// Share of test images that, seen through every third pixel, lie nearest to a training image of
/// their own class.
double nearest_neighbour_accuracy(const Splits& splits) {
  const auto distance = [](const std::uint8_t* a, const std::uint8_t* b) {
    std::int32_t sum = 0;
    for (int i = 0; i < 784; i += 3) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
  };
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < splits.test->size(); ++i) {
    std::int32_t best = std::numeric_limits<std::int32_t>::max(), guess = -1;
    for (std::int64_t j = 0; j < splits.train->size(); ++j) {
      const std::int32_t d =
          distance(splits.test->images().data() + 784 * i, splits.train->images().data() + 784 * j);
      if (d < best) best = d, guess = splits.train->targets()[static_cast<std::size_t>(j)];
    }
    right += guess == splits.test->targets()[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(splits.test->size());
}

TEST(Synthetic, HasSomethingToLearnAndIsNotTrivial) {
  const double accuracy = nearest_neighbour_accuracy(make_synthetic({.train = 1500, .test = 200}));
  EXPECT_GT(accuracy, 0.55);
  EXPECT_LT(accuracy, 0.90);
}

TEST(Synthetic, RefusesSizesThatAreNotPositive) {
  EXPECT_TRUE(says(message_of<DataError>([] { make_synthetic({.train = 0}); }),
                   {"synthetic", "must be positive, not 0"}));
  EXPECT_TRUE(
      says(message_of<DataError>([] { make_synthetic({.train = 1, .test = -5}); }), {"-5"}));
}

}  // namespace
}  // namespace ringlet::data
