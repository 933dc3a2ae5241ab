// How a report summarises a model's answers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "app/report/sections.h"
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

/// One image of each class, of which the first two are taken for each other.
TestResults results_of(std::vector<std::string> names) {
  const std::size_t classes = names.size();
  std::vector<std::int32_t> labels;
  std::vector<float> logits(classes * classes);
  for (std::size_t k = 0; k < classes; ++k) {
    labels.push_back(static_cast<std::int32_t>(k));
    logits[k * classes + (k < 2 ? 1 - k : k)] = 9;
  }
  return tally(std::make_shared<const data::MemoryDataset>(
                   data::DatasetInfo{.name = "t",
                                     .channels = 1,
                                     .height = 1,
                                     .width = 1,
                                     .target_names = std::move(names)},
                   std::vector<std::uint8_t>(classes), std::move(labels)),
               logits, 0);
}

TEST(Confusion, HasCellsThatCanBeSeenForAnyNumberOfClasses) {
  for (const std::size_t classes : {2u, 30u, 190u, 400u}) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < classes; ++k) names.push_back(fmt::format("class{}", k));
    const std::string html = confusion_figure(results_of(names), "c");
    std::size_t cells = 0;
    for (auto at = html.find("class=\"cell\""); at != html.npos;
         at = html.find("class=\"cell\"", at + 1), ++cells) {
      const double width = std::stod(html.substr(html.find(" width=\"", at) + 8));
      EXPECT_GT(width, 0.8 * 380 / static_cast<double>(classes)) << classes;
    }
    EXPECT_EQ(cells, classes);
  }
}

TEST(Confusion, ShortensNamesSoThatTheyStayApart) {
  const std::string html = confusion_figure(
      results_of({"a very long name of a class that goes on and on, one of a kind",
                  "a very long name of a class that goes on and on, two of a kind", "c"}),
      "c");
  EXPECT_NE(html.find(">\u2026one\u2026<title>a very long name"), html.npos) << html;
  EXPECT_NE(html.find(">\u2026two\u2026<title>a very long name"), html.npos) << html;
}

}  // namespace
}  // namespace ringlet::app::report
