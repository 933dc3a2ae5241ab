// Rows of the benchmark of all-reduce: how they are written and read, and what is concluded from
// them.
#include "bench/all_reduce/comparison.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/files/atomic_file.h"
#include "bench/all_reduce/measure.h"
#include "tests/support/files.h"

namespace ringlet::bench {
namespace {

using ringlet::testing::TemporaryDirectory;
using ringlet::testing::write_file;

Measurement row_of(const std::string& strategy, std::int64_t bytes, double median_us) {
  Measurement row;
  row.strategy = strategy;
  row.ranks = 2;
  row.bytes = bytes;
  row.count = bytes / 4;
  row.iterations = 10;
  row.median_us = row.min_us = row.p99_us = median_us;
  return row;
}

TEST(Measurements, HaveNcclTestsBandwidths) {
  Measurement row = row_of("ring", 1 << 20, 100);
  EXPECT_DOUBLE_EQ(row.algbw_gbs(), 10.48576);
  EXPECT_DOUBLE_EQ(row.busbw_gbs(), 10.48576);  // 2 (p-1)/p is 1 for two ranks
  row.ranks = 8;
  EXPECT_DOUBLE_EQ(row.busbw_gbs(), 10.48576 * 1.75);
}

TEST(Measurements, TakeTheMedianLeastAndNearlyWorstOfTheirCalls) {
  Measurement row;
  std::vector<double> seconds(200, 2e-6);
  seconds[7] = 1e-6;
  seconds[8] = seconds[9] = 9e-6;
  set_times(row, seconds);
  EXPECT_EQ(row.iterations, 200);
  EXPECT_DOUBLE_EQ(row.median_us, 2);
  EXPECT_DOUBLE_EQ(row.min_us, 1);
  EXPECT_DOUBLE_EQ(row.p99_us, 9);
  set_times(row, {1e-6, 2e-6});
  EXPECT_DOUBLE_EQ(row.median_us, 1.5);
}

TEST(Measurements, ComeBackFromJsonAsAnObjectAndAsLines) {
  const TemporaryDirectory folder;
  const nlohmann::json row = to_json(row_of("ring", 4096, 3));
  write_file(folder / "object.json", nlohmann::json{{"rows", {row, row}}}.dump(2));
  write_file(folder / "lines.json", row.dump() + "\n\n" + row.dump() + "\n");
  for (const char* name : {"object.json", "lines.json"}) {
    const auto rows = read_measurements(folder / name);
    ASSERT_EQ(rows.size(), 2u) << name;
    EXPECT_EQ(to_json(rows[1]), row) << name;
  }
}

TEST(Measurements, ThatCannotBeReadAreNamed) {
  const TemporaryDirectory folder;
  const auto refuses = [&](const std::string& text, const std::string& part) {
    write_file(folder / "x.json", text);
    try {
      read_measurements(folder / "x.json");
      ADD_FAILURE() << text;
    } catch (const FileError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  nlohmann::json row = to_json(row_of("ring", 4096, 3));
  row.erase("strategy");
  refuses(row.dump(), "row 1: key 'strategy' not found");
  row["strategy"] = 5;
  refuses(row.dump(), "row 1: type must be string");
  row["strategy"] = "ring";
  row["median_us"] = 0;
  refuses(row.dump(), "row 1: a time is not above 0");
  refuses("", "no rows");
  refuses("{\"rows\":[]}", "no rows");
  refuses("{\"rows\":[1", "row 1 is no object");
  EXPECT_THROW(read_measurements(folder / "nothing.json"), FileError);
}

TEST(Measurements, FillALineOfCsvEach) {
  EXPECT_EQ(to_csv({row_of("ring", 4096, 2)}),
            "engine,ranks_as,transport,strategy,ranks,bytes,count,type,op,in_place,iterations,"
            "median_us,min_us,p99_us,algbw_gbs,busbw_gbs,wrong\n"
            "ringlet,threads,local,ring,2,4096,1024,f32,sum,true,10,2.000,2.000,2.000,2.0480,"
            "2.0480,0\n");
}

TEST(Comparisons, SayWhichIsFastestFromWhichSizeOn) {
  // Few bytes: 1 against 4 us; many: 4 times as long with 4 times the bytes.
  std::vector<Measurement> rows;
  for (const std::int64_t bytes : {1024, 4096, 16384}) {
    rows.push_back(row_of("doubling", bytes, static_cast<double>(bytes) / 1024));
    rows.push_back(row_of("ring", bytes, 8));
  }
  const auto comparisons = compare(rows);
  ASSERT_EQ(comparisons.size(), 1u);
  const Comparison& comparison = comparisons.front();
  ASSERT_EQ(comparison.fastest.size(), 2u);
  EXPECT_EQ(comparison.series[comparison.fastest[0].series].label, "doubling");
  EXPECT_EQ(comparison.fastest[0].to, 4096);
  EXPECT_EQ(comparison.series[comparison.fastest[1].series].label, "ring");
  ASSERT_TRUE(comparison.fastest[1].begins_at);
  EXPECT_NEAR(*comparison.fastest[1].begins_at, 8192, 1e-6);
  EXPECT_NE(to_text(comparison).find("1K to 4K doubling; 16K ring (from about 8K)"),
            std::string::npos)
      << to_text(comparison);
}

TEST(Comparisons, SayHowFarAutoIsFromTheFastest) {
  std::vector<Measurement> rows;
  for (const auto& [bytes, doubling, automatic] :
       {std::tuple{1024, 1.0, 1.1}, {4096, 4.0, 4.0}, {16384, 16.0, 12.0}}) {
    rows.push_back(row_of("doubling", bytes, doubling));
    rows.push_back(row_of("ring", bytes, 8));
    rows.push_back(row_of("auto", bytes, automatic));
    rows.push_back(row_of("one-shot", bytes, 0.5));
    rows.back().transport = "shm";  // goes another way
  }
  const std::string text = to_text(compare(rows).front());
  EXPECT_NE(text.find("auto (local) takes 1.10 times the best strategy's time in the median, at "
                      "worst 1.50 times (16K)\n"),
            std::string::npos)
      << text;
}

TEST(Comparisons, NeverCallAutoTheFastestNorFitAModelToIt) {
  std::vector<Measurement> rows;
  for (const std::int64_t bytes : {1024, 4096, 16384}) {
    rows.push_back(row_of("ring", bytes, 8));
    rows.push_back(row_of("auto", bytes, 2));
  }
  rows.push_back(row_of("auto", 65536, 2));  // a size that only auto has
  const std::vector<Comparison> comparisons = compare(rows);
  const Comparison& comparison = comparisons.front();
  ASSERT_EQ(comparison.fastest.size(), 1u);
  EXPECT_EQ(comparison.series[comparison.fastest[0].series].label, "ring");
  EXPECT_EQ(comparison.fastest[0].to, 16384);
  EXPECT_FALSE(comparison.series[1].fit);
  EXPECT_TRUE(comparison.series[0].fit);
  ASSERT_EQ(comparison.regrets.size(), 1u);
  EXPECT_EQ(comparison.regrets[0].worst, 0.25);
  EXPECT_EQ(models_json(comparisons).size(), 1u);
  EXPECT_EQ(fastest_json(comparisons).at(0).at("strategy"), "ring");
  EXPECT_EQ(regrets_json(comparisons).at(0).at("strategy"), "auto");

  const Comparison alone = compare({row_of("auto", 1024, 2), row_of("auto", 4096, 2)}).front();
  EXPECT_TRUE(alone.fastest.empty());
  EXPECT_TRUE(alone.regrets.empty());
  EXPECT_TRUE(fastest_by_models(alone).empty());
  EXPECT_EQ(to_text(alone), "");
}

TEST(Comparisons, CountTheQuickestOfSeveralRowsOfASize) {
  const auto comparisons =
      compare({row_of("ring", 1024, 5), row_of("ring", 4096, 9), row_of("ring", 1024, 3)});
  const Series& ring = comparisons.front().series.front();
  EXPECT_EQ(ring.rows.size(), 3u);
  ASSERT_EQ(ring.curve.size(), 2u);
  EXPECT_EQ(ring.curve[0].median_us, 3);
}

TEST(RoughSizes, HaveThreeDigits) {
  EXPECT_EQ(rough_size(4096), "4K");
  EXPECT_EQ(rough_size(5432), "5.30K");
  EXPECT_EQ(rough_size(1.0), "1");
  EXPECT_EQ(rough_size(1020.0 * 1024), "1020K");
  EXPECT_EQ(rough_size(64 << 20), "64M");
  EXPECT_EQ(rough_size(50.5 * (1 << 20)), "50.5M");
}

TEST(Comparisons, SayTheSameByTheModels) {
  std::vector<Measurement> rows;
  for (std::int64_t bytes = 1024; bytes <= 1 << 20; bytes *= 4) {
    rows.push_back(row_of("doubling", bytes, 1 + static_cast<double>(bytes) * 1e-4));
    rows.push_back(row_of("ring", bytes, 11 + static_cast<double>(bytes) * 5e-5));
  }
  const Comparison comparison = compare(rows).front();
  const std::vector<Stretch> stretches = fastest_by_models(comparison);
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_EQ(comparison.series[stretches[0].series].label, "doubling");
  EXPECT_EQ(stretches[0].from, 1024);
  EXPECT_EQ(stretches[1].to, 1 << 20);
  ASSERT_TRUE(stretches[1].begins_at);
  EXPECT_NEAR(*stretches[1].begins_at, 10 / 5e-5, 1000);
}

TEST(Comparisons, KeepOtherWorkAndOtherEnginesApart) {
  std::vector<Measurement> rows{row_of("ring", 1024, 1), row_of("ring", 1024, 2),
                                row_of("ring", 1024, 3), row_of("ring", 1024, 4)};
  rows[1].engine = "gloo";
  rows[1].ranks_as = "processes";
  rows[2].ranks_as = "processes";
  rows[3].ranks = 4;
  const auto comparisons = compare(rows);
  ASSERT_EQ(comparisons.size(), 2u);
  ASSERT_EQ(comparisons[0].series.size(), 3u);
  EXPECT_EQ(comparisons[0].series[0].label, "ringlet ring (threads)");
  EXPECT_EQ(comparisons[0].series[1].label, "gloo ring");
  EXPECT_EQ(comparisons[0].series[2].label, "ringlet ring (processes)");
  EXPECT_FALSE(comparisons[0].series[0].fit);  // one size
}

TEST(Comparisons, FitEachStrategysModel) {
  std::vector<Measurement> rows;
  for (std::int64_t bytes = 1024; bytes <= 1 << 20; bytes *= 4) {
    rows.push_back(row_of("ring", bytes, 2 * 3 + static_cast<double>(bytes) * 1e-4));
  }
  const auto comparisons = compare(rows);
  const Series& ring = comparisons.front().series.front();
  ASSERT_TRUE(ring.fit);
  EXPECT_NEAR(ring.fit->model.latency_s, 3e-6, 1e-12);
  EXPECT_NEAR(ring.predicted_seconds(1 << 20), 1e-6 * (6 + 104.8576), 1e-10);
  const nlohmann::json models = models_json(comparisons);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0]["strategy"], "ring");
  EXPECT_NEAR(models[0]["seconds_per_byte"].get<double>(), 1e-10, 1e-16);
}

}  // namespace
}  // namespace ringlet::bench
