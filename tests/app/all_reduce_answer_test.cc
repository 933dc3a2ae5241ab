// The sentence that the benchmark's page begins with, from figures made up for it.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "app/report/all_reduce_groups.h"
#include "app/report/all_reduce_page.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {
namespace {

using Rows = std::vector<bench::Measurement>;

/// A strategy's microseconds at 1K, 4K, 16K, ...; one that is 0 was not measured.
void add(Rows& rows, const char* strategy, std::initializer_list<double> times,
         const char* engine = "ringlet") {
  std::int64_t bytes = 1024;
  for (const double time : times) {
    bench::Measurement row;
    row.engine = engine;
    row.strategy = strategy;
    row.ranks = 2;
    row.bytes = bytes;
    row.median_us = row.min_us = row.p99_us = time;
    if (time > 0) rows.push_back(row);
    bytes *= 4;
  }
}

/// With the spaces that no line ends at as spaces.
std::string answer(const Rows& rows) {
  std::string text = answer_of(bench::compare(rows).front());
  for (auto at = text.find("\u00a0"); at != text.npos; at = text.find("\u00a0")) {
    text.replace(at, std::string("\u00a0").size(), " ");
  }
  return text;
}

TEST(AllReduceAnswer, NamesTheFastestItsSizesAndHowFarTheRingIsBehind) {
  Rows rows;
  add(rows, "ring", {2, 4, 12, 30});
  add(rows, "doubling", {1, 2, 9, 40});
  add(rows, "two-shot", {2, 3, 4, 20});
  EXPECT_EQ(answer(rows),
            "two-shot from 16 KiB, 3.0 times as fast as the ring at 16 KiB; doubling up to 4 KiB");
}

TEST(AllReduceAnswer, CallsATenthAsFast) {
  Rows rows;
  add(rows, "ring", {2, 4, 8});
  add(rows, "two-shot", {1.05, 2, 4.2});
  add(rows, "one-shot", {1, 3, 4});
  EXPECT_EQ(answer(rows), "two-shot at every size, 2.0 times as fast as the ring at 4 KiB");
}

TEST(AllReduceAnswer, TakesAutoForNoStrategy) {
  Rows rows;
  add(rows, "auto", {1, 1, 1});
  add(rows, "ring", {2, 2, 2});
  add(rows, "naive", {3, 3, 3});
  EXPECT_EQ(answer(rows), "ring at every size");
}

TEST(AllReduceAnswer, OfOneStrategySaysWhatItReaches) {
  Rows rows;
  add(rows, "ring", {1.024, 2.048});
  EXPECT_EQ(answer(rows), "ring, up to 2 GB/s of bus bandwidth, at 4 KiB");
}

TEST(AllReduceAnswer, NamesTheEngineWhereThereAreSeveral) {
  Rows rows;
  add(rows, "ring", {2});
  add(rows, "naive", {1});
  add(rows, "ring", {0.5}, "openmpi");
  EXPECT_EQ(answer(rows), "ringlet naive at 1 KiB, 2.0 times as fast as the ring at 1 KiB");
}

TEST(AllReduceAnswer, DoesNotListWhatChangesFromSizeToSize) {
  Rows rows;
  add(rows, "naive", {1, 2, 1, 2, 0.5});
  add(rows, "tree", {2, 1, 2, 1, 1});
  EXPECT_EQ(answer(rows), "naive from 256 KiB");
}

/// With intervals of a tenth up and down.
Rows sure(Rows rows) {
  for (bench::Measurement& row : rows) {
    row.low_us = 0.9 * row.median_us;
    row.high_us = 1.1 * row.median_us;
  }
  return rows;
}

TEST(AllReduceAnswer, NamesTogetherWhatIsEqual) {
  Rows rows;
  add(rows, "ring", {2, 4, 8, 16});
  add(rows, "tree", {2.1, 4.2, 8.4, 16.8});
  add(rows, "naive", {1.9, 9, 9, 99});
  EXPECT_EQ(answer(sure(rows)), "ring and tree at every size");
  rows.erase(rows.begin(), rows.begin() + 4);
  EXPECT_EQ(answer(sure(rows)), "tree at every size");
}

TEST(AllReduceAnswer, PassesOverWhatDoesNotCount) {
  Rows rows;
  add(rows, "ring", {2, 4, 8});
  add(rows, "tree", {9, 9, 9});
  rows = sure(rows);
  for (const std::size_t bad : {1, 4}) {  // at 4K
    rows[bad].counts = false;
    rows[bad].median_us = 9000;
  }
  EXPECT_EQ(answer(rows), "ring up to 1 KiB and from 16 KiB; open at 4 KiB");
  for (bench::Measurement& row : rows) row.counts = false;
  EXPECT_EQ(answer(rows), "the machine was busy, and nothing that was measured tells a winner");
  rows.resize(3);
  EXPECT_EQ(answer(rows), "the machine was busy, and nothing that was measured tells a winner");
}

TEST(AllReduceAnswer, NamesNoWinnerWhereSizesAreOpen) {
  Rows rows;
  add(rows, "ring", {20, 20, 40, 80, 160, 320, 640, 999});
  add(rows, "tree", {3, 5, 50, 100, 400, 800, 999, 1999});
  rows = sure(rows);
  const auto leave_out = [&](std::initializer_list<std::size_t> sizes) {
    for (const std::size_t size : sizes) rows[size].counts = rows[8 + size].counts = false;
  };
  leave_out({2, 3, 4, 5, 6, 7});
  EXPECT_EQ(answer(rows),
            "tree up to 4 KiB, 6.7 times as fast as the ring at 1 KiB; open at 16 KiB to 16 MiB");
  for (bench::Measurement& row : rows) row.counts = true;
  leave_out({0, 3});
  EXPECT_EQ(answer(rows),
            "ring at 16 KiB and from 256 KiB; tree at 4 KiB; open at 1 KiB and 64 KiB");
  leave_out({5});
  EXPECT_EQ(answer(rows),
            "ring at 16 KiB, at 256 KiB and from 4 MiB; tree at 4 KiB; open at 1 KiB, 64 KiB and "
            "1 MiB");
  leave_out({1, 7});
  rows[3].counts = rows[11].counts = true;
  EXPECT_EQ(answer(rows),
            "ring from 16 KiB to 256 KiB and at 4 MiB; open at 1 KiB to 4 KiB, 1 MiB and 16 MiB");
  rows.clear();
  add(rows, "ring", {1, 1, 1, 1, 1, 1, 1, 1});
  add(rows, "tree", {9, 9, 9, 9, 9, 9, 9, 9});
  leave_out({0, 2, 4, 6});
  EXPECT_EQ(answer(rows), "ring at 4 of 8 sizes; open at 4 of 8 sizes");
}

TEST(AllReducePlots, TellApartWhatRanOverSeveralTransports) {
  Rows rows;
  add(rows, "ring", {2, 4, 8});
  EXPECT_NE(model_plots_of(bench::compare(rows).front(), 1).str().find("id=\"model-1-ring\""),
            std::string::npos);
  add(rows, "ring", {3, 5, 9});
  for (std::size_t i = 0; i < 3; ++i) rows[i].transport = "shm";
  const std::string html = model_plots_of(bench::compare(rows).front(), 1).str();
  for (const char* part :
       {"id=\"model-1-ring-shm\"", "id=\"model-1-ring-local\"", "ring (shm): ", "ring (local): "}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

TEST(AllReduceGroups, OnlyTheBestAndTheRingStandOut) {
  Rows rows;
  add(rows, "naive", {1, 0, 0});  // quick where it was measured
  add(rows, "ring", {2, 4, 8});
  add(rows, "tree", {3, 3, 3});
  add(rows, "auto", {1, 1, 1});
  const bench::Comparison comparison = bench::compare(rows).front();
  const Group group = groups_of(comparison).front();
  EXPECT_EQ(best_strategy(group).label, "tree");
  std::vector<int> colors;
  for (const bench::Series* series : group) colors.push_back(color_of(group, *series));
  EXPECT_EQ(colors, (std::vector<int>{kGrey, kBaseline, kBest, kGrey}));
}

}  // namespace
}  // namespace ringlet::app::report
