// Float numbers beside images and instead of them: what loaders make of them, and what is refused.
#include "data/field_dataset.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/data_error.h"
#include "data/loader.h"
#include "data/memory_dataset.h"
#include "tests/support/files.h"

namespace ringlet::data {
namespace {

std::vector<float> count_up(std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}

/// Every batch of an epoch: sample i has 2i, 2i + 1 in the first field, and i in the second.
void expect_rows(const std::shared_ptr<const Dataset>& set, const LoaderOptions& options,
                 std::size_t first_field = 0) {
  const Sampler sampler(set->size(), 3, true);
  const std::int64_t size = set->size(), batch = options.max_batch;
  Loader loader(
      set, sampler,
      [=](std::int64_t k) -> std::optional<BatchRequest> {
        if (k * batch >= size) return {};
        return BatchRequest{1, k * batch, std::min(size, (k + 1) * batch)};
      },
      options);
  std::int64_t seen = 0;
  while (const Batch* made = loader.next()) {
    for (std::int64_t n = 0; n < made->n; ++n, ++seen) {
      const auto index = static_cast<float>(sampler.index(1, made->request.begin + n));
      EXPECT_EQ(made->fields[first_field][2 * n], 2 * index);
      EXPECT_EQ(made->fields[first_field][2 * n + 1], 2 * index + 1);
      EXPECT_EQ(made->fields[first_field + 1][n], index);
    }
  }
  EXPECT_EQ(seen, size);
}

std::vector<Field> two_fields(std::int64_t samples) {
  return {{"pair", {2}, count_up(2 * samples)}, {"one", {1, 1}, count_up(samples)}};
}

TEST(FieldDataset, LoadersGiveTheRowsOfTheirSamples) {
  const auto set = std::make_shared<const FieldDataset>("numbers", two_fields(53));
  EXPECT_EQ(set->size(), 53);
  EXPECT_EQ(set->pixels(), 0);
  EXPECT_EQ(set->target_values(), 0);
  for (const int workers : {0, 1, 3}) expect_rows(set, {.max_batch = 16, .workers = workers});
  expect_rows(set, {.layout = BatchLayout::lanes16, .max_batch = 20});
}

TEST(FieldDataset, ImagesMayHaveFieldsBesideThem) {
  std::vector<std::int32_t> labels(40);
  const auto set = std::make_shared<const MemoryDataset>(
      DatasetInfo{.name = "both", .channels = 1, .height = 2, .width = 2, .target_names = {"all"}},
      std::vector<std::uint8_t>(160), labels, two_fields(40));
  expect_rows(set, {.max_batch = 16});
  expect_rows(set, {.layout = BatchLayout::lanes16, .max_batch = 16});
  EXPECT_NE(set->contents().find("1 classes, with pair [2], one [1, 1], hash "), std::string::npos)
      << set->contents();
}

TEST(FieldDataset, SaysWhatIsInIt) {
  const FieldDataset set("numbers", two_fields(5)), other("numbers", two_fields(6));
  EXPECT_TRUE(set.contents().starts_with("5 samples of pair [2], one [1, 1], hash "));
  std::vector<Field> changed = two_fields(5);
  changed[1].values[4] = 7;
  EXPECT_NE(set.hash(), FieldDataset("numbers", changed).hash());
  changed = two_fields(5);
  changed[0].name = "two";
  EXPECT_NE(set.hash(), FieldDataset("numbers", changed).hash());
  EXPECT_EQ(set.hash(), FieldDataset("others", two_fields(5)).hash());
}

TEST(FieldDataset, NamesTheFieldThatDoesNotFit) {
  const auto refusal = [](std::vector<Field> fields) {
    return testing::message_of<DataError>([&] { FieldDataset("numbers", std::move(fields)); });
  };
  EXPECT_EQ(refusal({{"a", {1}, count_up(4)}, {"b", {3}, count_up(11)}}),
            "numbers: the field 'b' has 11 numbers for 4 samples of 3");
  EXPECT_EQ(refusal({{"a", {1}, count_up(4)}, {"a", {1}, count_up(4)}}),
            "numbers: the field 'a' is there twice");
  EXPECT_EQ(refusal({{"a", {1}, count_up(4)}, {"b", {1, 1, 1, 1}, count_up(4)}}),
            "numbers: the field 'b' should have one to three extents, each above 0");
  EXPECT_EQ(refusal({{"a", {1}, count_up(4)}, {"b", {}, count_up(4)}}),
            "numbers: the field 'b' should have one to three extents, each above 0");
  EXPECT_EQ(refusal({{"a", {1}, count_up(4)}, {"b", {-2, -2}, count_up(16)}}),
            "numbers: the field 'b' should have one to three extents, each above 0");
  for (const char* name : {"images", "targets", "constants", "handed on", ""}) {
    EXPECT_EQ(refusal({{"a", {1}, count_up(4)}, {name, {1}, count_up(4)}}),
              "numbers: the field '" + std::string(name) +
                  "' needs another name: images, targets, constants and 'handed on' are a batch's "
                  "own");
  }
  EXPECT_EQ(refusal(std::vector<Field>(9, {"a", {1}, {}})), "numbers: there are no samples");
  EXPECT_EQ(refusal({}), "numbers: there are no samples");
}

}  // namespace
}  // namespace ringlet::data
