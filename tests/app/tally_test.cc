// How a report summarises a model's answers.
#include <gtest/gtest.h>

#include <cmath>

#include "app/report/test_results.h"
#include "data/memory_dataset.h"

namespace ringlet::app::report {
namespace {

std::shared_ptr<const data::Dataset> images_with(std::vector<std::int32_t> labels) {
  const std::size_t count = labels.size();
  return std::make_shared<const data::MemoryDataset>(
      data::DatasetInfo{
          .name = "t", .channels = 1, .height = 1, .width = 1, .target_names = {"a", "b", "c"}},
      std::vector<std::uint8_t>(count), std::move(labels));
}

TEST(Tally, CountsLabelsAgainstAnswers) {
  const TestResults results =
      tally(images_with({0, 0, 2, 1}), {9, 0, 0, 0, 9, 0, 0, 9, 0, 0, 9, 0}, 10);
  EXPECT_EQ(results.confusion, (std::vector<std::int64_t>{1, 1, 0, 0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(results.right(), 2);
  EXPECT_EQ(results.samples_of(0), 2);
  EXPECT_EQ(results.count(2, 1), 1);
}

TEST(Tally, PutsTheWorstMistakesFirst) {
  const TestResults results =
      tally(images_with({0, 0, 1, 1}), {0, 1, 0, 0, 5, 0, 0, 9, 0, 1000, -1000, 0}, 2);
  ASSERT_EQ(results.worst.size(), 2u);
  EXPECT_EQ(results.worst[0].index, 3);
  EXPECT_EQ(results.worst[0].label, 1);
  EXPECT_EQ(results.worst[0].answer, 0);
  EXPECT_EQ(results.worst[0].label_probability, 0);
  EXPECT_EQ(results.worst[0].answer_probability, 1);
  EXPECT_EQ(results.worst[1].index, 1);
  EXPECT_NEAR(results.worst[1].answer_probability, std::exp(5) / (std::exp(5) + 2), 1e-12);
}

}  // namespace
}  // namespace ringlet::app::report
