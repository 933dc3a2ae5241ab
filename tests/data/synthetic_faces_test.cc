// Drawn faces: a pure function of seed, split and index, whose identities can be told apart.
#include "data/synthetic_faces.h"

#include <gtest/gtest.h>

#include <set>

#include "base/data_error.h"
#include "data/open_dataset.h"
#include "tests/support/files.h"

namespace ringlet::data {
namespace {

using testing::message_of;
using testing::says;

TEST(SyntheticFaces, AreWhatDataNames) {
  const Splits splits =
      open_dataset("synthetic-faces:30",
                   {.synthetic_train = 200, .synthetic_test = 50, .pictures = {.image_size = 20}});
  EXPECT_EQ(splits.train->size(), 200);
  EXPECT_EQ(splits.test->size(), 50);
  EXPECT_EQ(splits.train->channels(), 3);
  EXPECT_EQ(splits.train->height(), 20);
  EXPECT_EQ(splits.train->target_values(), 30);
  EXPECT_EQ(splits.train->target_names()[7], "07");
  EXPECT_EQ(open_dataset("synthetic-faces:3", {.synthetic_train = 2}).train->height(), 112);
  const std::set<std::int32_t> labels(splits.train->targets().begin(),
                                      splits.train->targets().end());
  EXPECT_GT(labels.size(), 25U);
  EXPECT_EQ(find_dataset("synthetic-faces"), nullptr);
  EXPECT_EQ(find_dataset("synthetic-faces:"), nullptr);
  EXPECT_EQ(find_dataset("synthetic-faces:9")->name, kSyntheticFacesName);
}

TEST(SyntheticFaces, AreAFunctionOfSeedSplitAndIndex) {
  const SyntheticFacesOptions few{.train = 20, .test = 20, .image_size = 16};
  SyntheticFacesOptions more = few;
  more.train = 40;
  const Splits one = make_synthetic_faces("5", few), other = make_synthetic_faces("5", more);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(one.train->image(i), other.train->image(i));
    EXPECT_EQ(one.train->targets()[static_cast<std::size_t>(i)],
              other.train->targets()[static_cast<std::size_t>(i)]);
    EXPECT_NE(one.train->image(i), one.test->image(i));
  }
  more.seed = 2;
  EXPECT_NE(make_synthetic_faces("5", more).train->image(0), other.train->image(0));
  EXPECT_NE(make_synthetic_faces("5", more).train->hash(), other.train->hash());
  EXPECT_NE(one.train->hash(), one.test->hash());
}

TEST(SyntheticFaces, OfOneIdentityAreAlike) {
  const Splits splits = make_synthetic_faces("4", {.train = 60, .test = 60, .image_size = 24});
  const auto distance = [](const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
  };
  for (int i = 0; i < 60; ++i) {
    int nearest = 0;
    double least = 1e18;
    for (int k = 0; k < 60; ++k) {
      const double d = distance(splits.test->image(i), splits.train->image(k));
      if (d < least) nearest = k;
      least = std::min(least, d);
    }
    EXPECT_EQ(splits.train->targets()[static_cast<std::size_t>(nearest)],
              splits.test->targets()[static_cast<std::size_t>(i)]);
  }
}

TEST(SyntheticFaces, RefuseWhatIsNoNumberAndWhatFillsTheMemory) {
  for (const char* text : {"0", "-1", "x", "1e3", "2147483648", "7 "}) {
    EXPECT_TRUE(says(message_of<DataError>([&] { make_synthetic_faces(text); }),
                     {"synthetic-faces:", "a whole number from 1"}))
        << text;
    EXPECT_EQ(synthetic_identities("synthetic-faces:" + std::string(text)), 0);
  }
  EXPECT_EQ(synthetic_identities("synthetic-faces:2147483647"), 2147483647);
  EXPECT_EQ(synthetic_identities("synthetic-faces"), 0);
  EXPECT_EQ(synthetic_identities("faces:12"), 0);
}

}  // namespace
}  // namespace ringlet::data
