// Rows of the benchmark of all-reduce: how they are written and read, and what is concluded from
// them.
#include "bench/all_reduce/comparison.h"

#include <fmt/format.h>
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

using ringlet::testing::message_of;
using ringlet::testing::says;
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
  refuses(row.dump(), "row 1: 'strategy' is missing");
  row["strategy"] = 5;
  refuses(row.dump(), "row 1: 'strategy' is not a text");
  row["strategy"] = "ring";
  for (const char* time : {"median_us", "min_us", "p99_us"}) {
    nlohmann::json changed = row;
    changed[time] = 0;
    refuses(row.dump() + "\n" + changed.dump(),
            std::string("row 2: '") + time + "' is not above 0");
  }
  const auto with = [&](const char* field, const nlohmann::json& value) {
    nlohmann::json changed = row;
    changed[field] = value;
    return changed.dump();
  };
  refuses(with("ranks", 5'000'000'000), "row 1: 'ranks' is too large or too small");
  refuses(with("in_place", 1), "row 1: 'in_place' is neither true nor false");
  refuses(with("hashes", {1}), "row 1: 'hashes' is not a list of texts");
  refuses(with("hashes", "a"), "row 1: 'hashes' is not a list of texts");
  refuses(with("low_us", 2), "row 1: 'high_us' is below 'low_us'");
  refuses(with("high_us", 2), "row 1: 'low_us' is not above 0");
  refuses(with("shared_core", 1.5), "row 1: 'shared_core' is not from 0 to 1");
  refuses(with("shared_core", -0.5), "row 1: 'shared_core' is not from 0 to 1");
  refuses(with("counts", 0), "row 1: 'counts' is neither true nor false");
  refuses("", "no rows");
  refuses("[]", "row 1 is no object");
  refuses("{\"rows\":[]}", "no rows");
  refuses("{\"rows\":{}}", "'rows' is not a list");
  refuses("{\"rows\":[1]}", "row 1 is no object");
}

/// What says where a file of two rows stops being JSON.
TEST(Measurements, ThatAreNoJsonAreNamedByRowAndField) {
  const TemporaryDirectory folder;
  const auto said = [&](const std::string& text) {
    write_file(folder / "x.json", text);
    return message_of<FileError>([&] { read_measurements(folder / "x.json"); });
  };
  const std::string row = to_json(row_of("ring", 4096, 3)).dump();
  for (const char* value : {"NaN", "Infinity", "-Infinity", "inf", "1e999"}) {
    std::string odd = row;
    odd.replace(odd.find("3.0"), 3, value);  // the first of the times: median_us
    const std::string name = "'median_us' is not valid JSON (";
    EXPECT_TRUE(says(said(fmt::format("{}\n{}", row, odd)), {"row 2: " + name})) << value;
    EXPECT_TRUE(says(said(fmt::format("{}\n{}", odd, row)), {"row 1: " + name})) << value;
    EXPECT_TRUE(says(said(fmt::format("{{\"rows\": [{},\n{}]}}", row, odd)), {"row 2: " + name}))
        << value;
  }
  EXPECT_TRUE(says(said(row + "\n" + row.substr(0, row.find(",\"ranks\""))), {"row 2: 'pinned'"}));
  EXPECT_TRUE(says(said("{\"rows\":[" + row + ","), {"row 2 is not valid JSON (parse error"}));
  EXPECT_TRUE(says(said("{\n\"rows\":[" + row.substr(0, 12)), {"row 1: 'algbw_gbs'"}));
  EXPECT_TRUE(says(said("hello"), {"x.json: this is not valid JSON (parse error at line 1"}));
  EXPECT_TRUE(says(said(std::string("\0", 1)), {"there is a zero byte"}));
}

TEST(Measurements, SayTheirIntervalAndWhetherTheyCount) {
  const TemporaryDirectory folder;
  nlohmann::json row = to_json(row_of("ring", 4096, 3));
  row.update({{"low_us", 2.5}, {"high_us", 3.5}, {"counts", false}, {"why_not", "busy"}});
  write_file(folder / "x.json", row.dump());
  const Measurement read = read_measurements(folder / "x.json").front();
  EXPECT_EQ(std::tie(read.low_us, read.high_us, read.counts, read.why_not),
            std::make_tuple(2.5, 3.5, false, "busy"));
  write_file(folder / "old.json", to_json(row_of("ring", 4096, 3)).dump());
  const Measurement old = read_measurements(folder / "old.json").front();
  EXPECT_EQ(std::tie(old.low_us, old.high_us, old.counts, old.why_not),
            std::make_tuple(0.0, 0.0, true, ""));
}

TEST(Measurements, ThatAreNotThereAreAnError) {
  const TemporaryDirectory folder;
  EXPECT_THROW(read_measurements(folder / "nothing.json"), FileError);
}

TEST(Measurements, FillALineOfCsvEach) {
  EXPECT_EQ(to_csv({row_of("ring", 4096, 2)}),
            "engine,ranks_as,transport,strategy,ranks,bytes,count,type,op,in_place,iterations,"
            "median_us,min_us,p99_us,algbw_gbs,busbw_gbs,wrong,mean_us,p90_us,low_us,high_us,"
            "rounds,counts,why_not,collective,root,machines,level\n"
            "ringlet,threads,local,ring,2,4096,1024,f32,sum,true,10,2.000,2.000,2.000,2.0480,"
            "2.0480,0,0.000,0.000,0.000,0.000,0,true,,all-reduce,,1,all\n");
}

TEST(Measurements, QuoteInCsvWhatHasCommasAndSayTheirLevel) {
  Measurement row = row_of("ring", 4096, 2);
  row.transport = "shm, \"fast\"";
  row.why_not = "busy";
  row.machines = 2;
  row.level = "between";
  const std::string csv = to_csv({row});
  EXPECT_NE(csv.find("\nringlet,threads,\"shm, \"\"fast\"\"\",ring,2,"), csv.npos) << csv;
  EXPECT_NE(csv.find(",busy,all-reduce,,2,between\n"), csv.npos) << csv;
}

/// With an interval.
Measurement sure_row(const std::string& strategy, std::int64_t bytes, double low, double median,
                     double high) {
  Measurement row = row_of(strategy, bytes, median);
  row.low_us = low;
  row.high_us = high;
  row.rounds = 11;
  return row;
}

/// That does not count, with the time of its quickest call.
Measurement bad_row(const std::string& strategy, std::int64_t bytes, double least, double median) {
  Measurement row = sure_row(strategy, bytes, least, median, median);
  row.min_us = least;
  row.counts = false;
  row.why_not =
      "its rounds place the median only between 1 and 8000 us, p99 is 900 times the quickest call";
  return row;
}

TEST(Measurements, SayWhetherTheyCountAndWhyNot) {
  const TemporaryDirectory folder;
  const Measurement bad = bad_row("ring", 4096, 2, 8000);
  write_file(folder / "rows.json", to_json(bad).dump() + "\n");
  const Measurement read = read_measurements(folder / "rows.json").front();
  EXPECT_FALSE(read.counts);
  EXPECT_EQ(read.why_not, bad.why_not);
  EXPECT_EQ(read.low_us, 2);
  EXPECT_EQ(read.high_us, 8000);
  EXPECT_EQ(read.rounds, 11);
  EXPECT_NE(
      to_csv({bad}).find(",2.000,8000.000,11,false,\"" + bad.why_not + "\",all-reduce,,1,all\n"),
      std::string::npos)
      << to_csv({bad});
  EXPECT_NE(table_row(bad).find("  does not count: " + bad.why_not + "\n"), std::string::npos);
  EXPECT_EQ(not_counting({row_of("ring", 4, 1)}), "");
  EXPECT_EQ(not_counting({row_of("ring", 4, 1), bad}),
            "the machine was busy: 1 of 2 rows does not count");
  EXPECT_EQ(not_counting({bad, row_of("ring", 4, 1), bad}),
            "the machine was busy: 2 of 3 rows do not count");
}

TEST(Measurements, SayWhatRanOnTheRanksCores) {
  const TemporaryDirectory folder;
  Measurement shared = row_of("ring", 4096, 3), alone = shared;
  shared.shared_core = 0.9;
  alone.shared_core = 0.1;
  write_file(folder / "rows.json", to_json(shared).dump() + "\n");
  EXPECT_EQ(read_measurements(folder / "rows.json").front().shared_core, 0.9);
  EXPECT_FALSE(to_json(row_of("ring", 4096, 3)).contains("shared_core"));
  EXPECT_EQ(on_shared_cores({shared, row_of("ring", 4096, 3), alone}),
            "the ranks' cores were shared for 50 % of the time (with what ran on their other "
            "hyper-threads): short calls take up to twice as long");
  EXPECT_EQ(on_shared_cores({alone, alone}), "");
  EXPECT_EQ(on_shared_cores({row_of("ring", 4096, 3)}), "");
  EXPECT_EQ(mean_shared_core({}), -1);
}

TEST(Measurements, OfOlderFilesCount) {
  const TemporaryDirectory folder;
  nlohmann::json row = to_json(row_of("ring", 4096, 3));
  for (const char* later : {"mean_us", "p90_us", "low_us", "high_us", "counts", "why_not"}) {
    row.erase(later);
  }
  row["rounds"] = {{{"median_us", 3}, {"cores", "near"}}};  // as bench/peers/all_reduce has them
  write_file(folder / "rows.json", row.dump() + "\n");
  const Measurement read = read_measurements(folder / "rows.json").front();
  EXPECT_TRUE(read.counts);
  EXPECT_FALSE(read.has_interval());
  EXPECT_EQ(read.rounds, 0);
  EXPECT_LT(read.shared_core, 0);
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

TEST(Equality, IsThatIntervalsOverlapOrMediansAreAlike) {
  const Measurement row = sure_row("ring", 4096, 9, 10, 11);
  EXPECT_TRUE(are_equal(row, sure_row("tree", 4096, 11, 12, 13)));
  EXPECT_FALSE(are_equal(row, sure_row("tree", 4096, 11.1, 12, 13)));
  EXPECT_FALSE(are_equal(row, sure_row("tree", 4096, 7, 8, 8.9)));
  EXPECT_TRUE(
      are_equal(sure_row("ring", 4096, 10, 10, 10), sure_row("tree", 4096, 10.2, 10.2, 10.2)));
  EXPECT_FALSE(
      are_equal(sure_row("ring", 4096, 10, 10, 10), sure_row("tree", 4096, 10.3, 10.3, 10.3)));
  EXPECT_FALSE(are_equal(row, row_of("tree", 4096, 10)));  // not known
}

TEST(Comparisons, NameStrategiesTogetherThatAreEqual) {
  const std::vector<Measurement> rows{
      sure_row("doubling", 1024, 0.9, 1, 1.1), sure_row("ring", 1024, 1.05, 1.2, 1.3),
      sure_row("tree", 1024, 3, 3, 3),         sure_row("doubling", 4096, 4, 4, 4),
      sure_row("ring", 4096, 3.9, 3.95, 4.2),  sure_row("tree", 4096, 3.9, 4.1, 4.5),
      sure_row("doubling", 16384, 16, 16, 16), sure_row("ring", 16384, 8, 8, 8),
      sure_row("tree", 16384, 20, 20, 20),     sure_row("doubling", 65536, 64, 64, 64),
      sure_row("ring", 65536, 12, 12, 12),     sure_row("tree", 65536, 11.9, 12.1, 14)};
  const std::vector<Comparison> comparisons = compare(rows);
  const Comparison& comparison = comparisons.front();
  // The ring is equal or faster everywhere; nothing else is.
  ASSERT_EQ(comparison.fastest.size(), 1U);
  EXPECT_EQ(names_of(comparison.fastest[0], comparison), "ring");
  const auto first_two = compare({rows.begin(), rows.begin() + 6});
  EXPECT_EQ(to_text(first_two.front()).find("fastest: 1K to 4K doubling and ring\n"), 0U)
      << to_text(first_two.front());
  const nlohmann::json json = fastest_json(first_two);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0].at("strategy"), "doubling");
  ASSERT_EQ(json[0].at("equal").size(), 1U);
  EXPECT_EQ(json[0].at("equal")[0].at("strategy"), "ring");
  EXPECT_EQ(fastest_json(comparisons)[0].at("equal").size(), 0U);
}

TEST(Comparisons, LeaveOutRowsThatDoNotCount) {
  std::vector<Measurement> rows;
  for (std::int64_t bytes = 1024; bytes <= 1 << 20; bytes *= 4) {
    const double median = 6 + static_cast<double>(bytes) * 1e-4;
    rows.push_back(sure_row("ring", bytes, median, median, median));
    rows.push_back(sure_row("auto", bytes, median, median, median));
    rows.push_back(sure_row("naive", bytes, 9 * median, 9 * median, 9 * median));
  }
  rows[6] = bad_row("ring", 16384, 7, 7996);
  rows[7] = bad_row("auto", 16384, 5, 90000);
  const std::vector<Comparison> comparisons = compare(rows);
  const Comparison& comparison = comparisons.front();
  const Series& ring = comparison.series.front();
  EXPECT_EQ(ring.rows.size(), 6U);
  EXPECT_EQ(ring.curve.size(), 5U);
  EXPECT_EQ(ring.at(16384), nullptr);
  ASSERT_TRUE(ring.fit);
  EXPECT_LT(ring.fit->worst_error, 1e-6);
  ASSERT_EQ(comparison.regrets.size(), 1U);
  EXPECT_DOUBLE_EQ(comparison.regrets[0].worst, 1);  // not 90000 us beside naive's
  // At 16K the ring might be the fastest, as its quickest call was: naive is not.
  EXPECT_EQ(comparison.open, std::vector<std::int64_t>{16384});
  ASSERT_EQ(comparison.fastest.size(), 1U);
  EXPECT_EQ(comparison.fastest[0].to, 1 << 20);
  EXPECT_EQ(to_text(comparison).find("fastest: 1K to 1M ring\nopen, as rows do not count: 16K\n"),
            0U)
      << to_text(comparison);
}

TEST(Comparisons, KnowTheFastestWhereARowThatDoesNotCountIsSlowerInAnyCase) {
  const Comparison comparison =
      compare({sure_row("ring", 4096, 5, 5, 5.5), bad_row("naive", 4096, 5.6, 8000)}).front();
  EXPECT_TRUE(comparison.open.empty());
  ASSERT_EQ(comparison.fastest.size(), 1U);
  const Comparison open =
      compare({sure_row("ring", 4096, 5, 5, 5.5), bad_row("naive", 4096, 5.4, 8000)}).front();
  EXPECT_TRUE(open.fastest.empty());
}

TEST(Comparisons, LeaveOutRowsWithWrongResults) {
  std::vector<Measurement> rows;
  for (const std::int64_t bytes : {1024, 4096, 16384}) {
    const double median = 6 + static_cast<double>(bytes) * 1e-4;
    rows.push_back(row_of("ring", bytes, median));
    rows.push_back(row_of("auto", bytes, median));
    rows.push_back(row_of("naive", bytes, median / 2));
    rows.back().wrong = 1;
    rows.push_back(row_of("tree", bytes, median / 4));
    rows.back().hashes = {"a", "b"};
  }
  const std::vector<Comparison> comparisons = compare(rows);
  const Comparison& comparison = comparisons.front();
  EXPECT_EQ(to_text(comparison).find("fastest: 1K to 16K ring\n"), 0U) << to_text(comparison);
  EXPECT_DOUBLE_EQ(comparison.regrets.at(0).worst, 1);
  EXPECT_EQ(models_json(comparisons).size(), 1U);
  EXPECT_NE(table_row(rows.back()).find("differ, by their hashes: a, b\n"), std::string::npos);
}

TEST(Comparisons, HaveNothingToSayWhereNoRowCounts) {
  const std::vector<Comparison> comparisons =
      compare({bad_row("ring", 1024, 5, 8000), bad_row("ring", 4096, 5, 8000)});
  EXPECT_TRUE(comparisons.front().fastest.empty());
  EXPECT_FALSE(comparisons.front().series.front().fit);
  EXPECT_EQ(to_text(comparisons.front()), "open, as rows do not count: 1K, 4K\n");
  EXPECT_TRUE(models_json(comparisons).empty());
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

TEST(Comparisons, DoNotCallAModelExactThatTwoPointsMade) {
  std::vector<Measurement> rows{row_of("ring", 1024, 5), row_of("ring", 4096, 8)};
  const std::string two = to_text(compare(rows).front());
  EXPECT_EQ(two.find('%'), std::string::npos) << two;
  EXPECT_EQ(two.substr(two.size() - 2), "-\n");
  rows.push_back(row_of("ring", 16384, 30));
  EXPECT_NE(to_text(compare(rows).front()).find(" %)\n"), std::string::npos);
}

TEST(Comparisons, TakeOfTwoSizesTheMiddleForTheMedian) {
  const Comparison comparison = compare({row_of("ring", 1024, 1), row_of("auto", 1024, 1.1),
                                         row_of("ring", 4096, 4), row_of("auto", 4096, 6)})
                                    .front();
  EXPECT_DOUBLE_EQ(comparison.regrets.at(0).median, 1.3);
  EXPECT_DOUBLE_EQ(comparison.regrets.at(0).worst, 1.5);
  EXPECT_EQ(comparison.regrets.at(0).worst_bytes, 4096);
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
