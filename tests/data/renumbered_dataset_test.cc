// A data set under the classes of a model.
#include "data/renumbered_dataset.h"

#include <gtest/gtest.h>

#include <memory>

#include "data/memory_dataset.h"

namespace ringlet::data {
namespace {

using Names = std::vector<std::string>;

std::shared_ptr<const Dataset> pets() {
  return std::make_shared<const MemoryDataset>(DatasetInfo{"pets", 1, 1, 1, {"cat", "dog"}},
                                               std::vector<std::uint8_t>{10, 20, 30},
                                               std::vector<std::int32_t>{0, 1, 1});
}

TEST(RenumberedDataset, NumbersItsClassesByName) {
  const Names known{"bird", "dog", "frog", "cat"};
  const auto indices = indices_of({"cat", "dog"}, known);
  ASSERT_TRUE(indices);
  EXPECT_EQ(*indices, (std::vector<std::int32_t>{3, 1}));
  const RenumberedDataset set(pets(), known, *indices);
  EXPECT_EQ(set.target_names(), known);
  EXPECT_EQ(std::vector<std::int32_t>(set.targets().begin(), set.targets().end()),
            (std::vector<std::int32_t>{3, 1, 1}));
  EXPECT_EQ(set.image(2), std::vector<std::uint8_t>{30});
  EXPECT_EQ(set.images()[1], 20);
  EXPECT_EQ(set.statistics()[0].mean, pets()->statistics()[0].mean);
}

TEST(RenumberedDataset, NeedsAllNamesToBeKnown) {
  EXPECT_FALSE(indices_of({"cat", "Dog"}, {"cat", "dog"}));
  EXPECT_TRUE(indices_of({}, {"cat"}));
  using Indices = std::vector<std::int32_t>;
  EXPECT_EQ(indices_of({"0", "2"}, {"00", "01", "02"}), (Indices{0, 2})) << "labels of a .rec";
  EXPECT_EQ(indices_of({"02", "a0"}, {"2", "a0"}), (Indices{0, 1}));
  EXPECT_EQ(indices_of({"1", "01"}, {"01", "1"}), (Indices{1, 0})) << "as they are written";
  EXPECT_FALSE(indices_of({"1"}, {"01", "001"})) << "either";
  EXPECT_FALSE(indices_of({"a0"}, {"a00"}));
  EXPECT_FALSE(indices_of({"1", "01"}, {"1", "2"})) << "two classes do not become one";
}

TEST(RenumberedDataset, ListsNamesAsFarAsThereIsRoom) {
  EXPECT_EQ(some_of({"a", "b"}), "a, b");
  Names many;
  for (int i = 0; i < 11; ++i) many.push_back(std::to_string(i));
  EXPECT_TRUE(some_of(many).ends_with("9, 10"));
  many.push_back("11");
  EXPECT_TRUE(some_of(many).ends_with("8, 9 and 2 more"));
}

}  // namespace
}  // namespace ringlet::data
