// The page of `ringlet bench train --replicas 1,2,4`.
#include "app/report/scaling_page.h"

#include <gtest/gtest.h>

namespace ringlet::app::report {
namespace {

using bench::ScalingRow;

ScalingRow row_of(int replicas, double step, const bench::ScalingParts& parts) {
  constexpr std::int64_t kBatch = 256;
  ScalingRow row{.replicas = replicas, .batch = kBatch};
  for (int i = 0; i < 11; ++i) {
    const double seconds = step * (1 + 2e-3 * (i - 5));
    row.rounds.push_back({.rate = static_cast<double>(kBatch) / seconds, .parts = parts});
  }
  bench::judge(row);
  return row;
}

/// What follows from which rows count.
void judge_again(ScalingPage& page) {
  bench::compare_with_first(page.rows);
  page.forecast = bench::forecast_of(page.rows, page.rule, Layout::nchw);
}

ScalingPage page_of_three() {
  ScalingPage page{
      .rows = {row_of(1, 0.0120, {.compute = 0.0115, .update = 0.0004, .between = 0.0001}),
               row_of(2, 0.0065,
                      {.compute = 0.0058, .sums = 0.0002, .waiting = 0.0001, .update = 0.0004}),
               row_of(4, 0.0036,
                      {.compute = 0.0028, .sums = 0.0002, .waiting = 0.0002, .update = 0.0004})},
      .settings = "a model <b>, a batch of 256 shared by all replicas, as threads x 1 thread",
      .notes = {"2 replicas: a note"},
      .spread = {"the slowest of 2 replicas computes 3.1 % longer than the quickest"},
      .machine = {{"processor", "Some <i>processor"}, {"cores", 4}, {"instruction_set", "avx2"}}};
  judge_again(page);
  return page;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(ScalingPage, AnswersAndShowsEveryRow) {
  const std::string html = scaling_page(page_of_three());
  EXPECT_TRUE(has(html, "<h1>Would another device pay here? Yes: 5 replicas are predicted"));
  for (const char* id : {"rate", "efficiency", "step", "rows", "parts"}) {
    EXPECT_TRUE(has(html, "id=\"" + std::string(id) + "\"")) << id;
  }
  EXPECT_TRUE(has(html, "predicted"));
  EXPECT_TRUE(has(html, "On Some &lt;i&gt;processor, 4 cores, avx2."));
  EXPECT_TRUE(has(html, "a model &lt;b&gt;"));
  EXPECT_FALSE(has(html, "<i>processor"));
  EXPECT_FALSE(has(html, "hollow in the plots"));
  EXPECT_TRUE(has(html, "2 replicas: a note."));
}

TEST(ScalingPage, SaysThatTheMachineWasBusy) {
  ScalingPage page = page_of_three();
  page.rows[2].why_not = "its rounds <differ>";
  judge_again(page);
  const std::string html = scaling_page(page);
  EXPECT_TRUE(has(html, "It cannot be said: the row of 4 does not count"));
  EXPECT_TRUE(has(html, "The machine was busy: 1 of 3 rows does not count. Such rows are hollow"));
  EXPECT_TRUE(has(html, "no: its rounds &lt;differ&gt;"));
  EXPECT_TRUE(has(html, "hollow\""));
  EXPECT_FALSE(has(html, "predicted"));
  EXPECT_TRUE(has(html, "Samples a second, 2 replicas"));  // the largest that counts
}

TEST(ScalingPage, ShowsNoFigureOfRowsThatDoNotCountAtItsHead) {
  ScalingPage page = page_of_three();
  for (ScalingRow& row : page.rows) row.why_not = "busy";
  judge_again(page);
  const std::string html = scaling_page(page);
  EXPECT_FALSE(has(html, "class=\"facts\""));
  EXPECT_FALSE(has(html, "id=\"efficiency\""));
  EXPECT_TRUE(has(html, "3 of 3 rows do not count"));
}

TEST(ScalingPage, OfGpusHasNoParts) {
  ScalingPage page = page_of_three();
  for (ScalingRow& row : page.rows) row.parts = {};
  page.forecast = bench::forecast_of(page.rows, page.rule, Layout::nchw);
  const std::string html = scaling_page(page);
  EXPECT_FALSE(has(html, "id=\"step\""));
  EXPECT_FALSE(has(html, "id=\"parts\""));
  EXPECT_FALSE(has(html, "optimizer"));
}

}  // namespace
}  // namespace ringlet::app::report
