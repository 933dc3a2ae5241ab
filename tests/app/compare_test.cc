// `ringlet compare`: ratios and their intervals, what files say, and what is made of two of them.
// Expected numbers are worked out by hand; t of 1 degree is 12.7062047, of 2 degrees 4.3026527.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/compare/comparison_page.h"
#include "base/files/file_error.h"
#include "base/files/json_text.h"
#include "tests/support/files.h"

namespace ringlet::app::compare {
namespace {

using nlohmann::json;
using ringlet::testing::message_of;
using ringlet::testing::says;
using ringlet::testing::TemporaryDirectory;
using ringlet::testing::write_file;

/// A figure by its logarithm, and by how far below and above it its interval goes on logarithms.
Figure by_logs(double value, double down, double up) {
  return {std::exp(value), std::exp(value - down), std::exp(value + up)};
}

TEST(CompareRatio, AddsTheDistancesFromTheEndsThatMatterAsSquares) {
  // Low: 0.4 of b and 0.3 of a make 0.5. High: 0.12 of b and 0.05 of a make 0.13.
  const Figure ratio = ratio_of(by_logs(1, 0.05, 0.3), by_logs(1.6, 0.4, 0.12));
  EXPECT_NEAR(std::log(ratio.value), 0.6, 1e-12);
  EXPECT_NEAR(std::log(ratio.low), 0.1, 1e-12);
  EXPECT_NEAR(std::log(ratio.high), 0.73, 1e-12);
  EXPECT_EQ(verdict_of(ratio), Verdict::worse);
  EXPECT_TRUE(is_worse_than(ratio, 1.10));  // exp(0.1) is 1.105
  EXPECT_FALSE(is_worse_than(ratio, 1.11));
}

TEST(CompareRatio, IsJudgedByItsWholeInterval) {
  EXPECT_EQ(verdict_of({1.2, 0.99, 1.4}), Verdict::equal);
  EXPECT_EQ(verdict_of({1.2, 1, 1.4}), Verdict::equal);
  EXPECT_EQ(verdict_of({1.2, 1.001, 1.4}), Verdict::worse);
  EXPECT_EQ(verdict_of({0.9, 0.8, 1}), Verdict::equal);
  EXPECT_EQ(verdict_of({0.9, 0.8, 0.99}), Verdict::better);
  EXPECT_FALSE(is_worse_than({1.2, 1.05, 1.4}, 1.05));
}

TEST(CompareRatio, OfWhatWasMeasuredOnceHasNoInterval) {
  for (const auto& [a, b] : {std::pair<Figure, Figure>{{2}, {3, 2.9, 3.1}}, {{2, 1, 3}, {3}}}) {
    const Figure ratio = ratio_of(a, b);
    EXPECT_DOUBLE_EQ(ratio.value, 1.5);
    EXPECT_FALSE(ratio.has_interval());
    EXPECT_EQ(verdict_of(ratio), Verdict::worse);
    EXPECT_TRUE(is_worse_than(ratio, 1.49));
    EXPECT_FALSE(is_worse_than(ratio, 1.5));
  }
  EXPECT_EQ(verdict_of(ratio_of({2}, {2})), Verdict::equal);
}

TEST(CompareRatio, HoldsItselfWhereRoundsDisagreeWithTheMedianOfAllCalls) {
  const Figure ratio = ratio_of({10, 11, 12}, {10, 8, 9});  // a's low and b's high are no distances
  EXPECT_NEAR(ratio.value, 1, 1e-12);
  EXPECT_NEAR(ratio.low, std::exp(-std::hypot(std::log(10 / 8.0), std::log(12 / 10.0))), 1e-12);
  EXPECT_NEAR(ratio.high, 1, 1e-12);
}

TEST(CompareFigure, OfPartsHasStudentsIntervalOfTheirLogarithms) {
  const Figure two = figure_of(5, std::vector<double>{1, std::exp(0.02)});
  EXPECT_NEAR(std::log(two.high / 5), 12.7062047 * 0.01, 1e-8);  // s / sqrt(2) is half of 0.02
  EXPECT_NEAR(std::log(5 / two.low), 12.7062047 * 0.01, 1e-8);
  const Figure three = figure_of(5, std::vector<double>{std::exp(-0.01), 1, std::exp(0.01)});
  EXPECT_NEAR(std::log(three.high / 5), 4.3026527 * 0.01 / std::sqrt(3.0), 1e-8);
  EXPECT_FALSE(figure_of(5, std::vector<double>{1}).has_interval());
  EXPECT_FALSE(figure_of(5, std::vector<double>{1, 0}).has_interval());
}

TEST(CompareFigure, OfARateIsATimeUpsideDown) {
  const Figure time = time_of({4, 2, 8});
  EXPECT_EQ(std::tuple(time.value, time.low, time.high), std::tuple(0.25, 0.125, 0.5));
  EXPECT_FALSE(time_of({4}).has_interval());
}

/// A row of `bench all-reduce --json`. `factor`: of its interval; 0: it has none.
json row_of(const char* strategy, int bytes, double median, double factor) {
  json row{{"engine", "ringlet"},
           {"ranks_as", "threads"},
           {"transport", "local"},
           {"strategy", strategy},
           {"ranks", 2},
           {"bytes", bytes},
           {"count", bytes / 4},
           {"type", "f32"},
           {"op", "sum"},
           {"in_place", true},
           {"iterations", 9},
           {"median_us", median},
           {"min_us", median},
           {"p99_us", median},
           {"wrong", 0}};
  if (factor > 0) row.update({{"low_us", median / factor}, {"high_us", median * factor}});
  return row;
}

class Compare : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string file(const std::string& name, const std::string& text) const {
    write_file(path(name), text);
    return path(name);
  }
  std::string rows(const std::string& name, const std::vector<json>& rows,
                   const json& more = json::object()) const {
    json document = more;
    document["rows"] = rows;
    return file(name, document.dump());
  }
  std::string refusal(const std::string& file) const {
    return message_of<FileError>([&] { read_side(file); });
  }

  TemporaryDirectory folder_;
};

TEST_F(Compare, ReadsRowsOfAllReduce) {
  json wrong = row_of("tree", 4096, 1, 1.5), busy = row_of("tree", 8192, 1, 1.5);
  wrong["wrong"] = 3;
  busy.update({{"counts", false},
               {"why_not", "rounds differ"},
               {"machines", 2},
               {"level", "inside"},
               {"engine", "gloo"},
               {"in_place", false}});
  const Side side = read_side(
      rows("a.json", {row_of("ring", 4096, 12, 1.5), row_of("ring", 4096, 10, 2), wrong, busy},
           {{"machine",
             {{"processor", "P"}, {"cores", 2}, {"instruction_set", "avx2"}, {"ringlet", "1"}}},
            {"build", {{"commit", "c"}, {"compiler", "GNU 12"}, {"build_type", "Release"}}}}));
  EXPECT_EQ(side.kind, Kind::all_reduce);
  ASSERT_EQ(side.rows.size(), 3u);
  EXPECT_EQ(side.rows[0].group, "2 ranks as threads over local, f32 sum in place");
  EXPECT_EQ(side.rows[0].figure.value, 10) << "the quickest of two";
  EXPECT_EQ(side.rows[0].figure.low, 5);
  EXPECT_EQ(side.rows[0].why_not, "");
  EXPECT_EQ(side.rows[1].why_not, "its results are wrong");
  EXPECT_EQ(side.rows[2].group,
            "gloo: 2 ranks as threads over local, on 2 machines (inside), f32 sum out of place");
  EXPECT_EQ(side.rows[2].why_not, "rounds differ");
  std::vector<std::string> said;
  for (const Trait& trait : side.traits) said.push_back(trait.said);
  EXPECT_EQ(said,
            (std::vector<std::string>{"on P, 2 cores, avx2", "by a build of c, GNU 12, Release",
                                      "by ringlet 1", "with 2 ranks", "of all-reduce",
                                      "with f32 sum", "with ranks not pinned", ""}));
}

TEST_F(Compare, TakesOfTheSameRowsOneThatCounts) {
  json quick = row_of("ring", 4096, 1, 1.5);
  quick.update({{"counts", false}, {"why_not", "busy"}});
  const json slow = row_of("ring", 4096, 2, 1.5);
  EXPECT_EQ(read_side(rows("a.json", {quick, slow})).rows[0].figure.value, 2);
  EXPECT_EQ(read_side(rows("b.json", {slow, quick})).rows[0].figure.value, 2);
}

/// What `bench train --json` writes, with rounds of these speeds.
json training(double speed, const std::vector<double>& rounds) {
  const auto parts = [](double forward) {
    return json{
        {"data", 0.001}, {"forward", forward}, {"backward", 0.004}, {"sync", 0}, {"update", 0.001}};
  };
  json document{{"model", "mlp"},
                {"device", "cpu:0"},
                {"replicas", 2},
                {"batch_size", 64},
                {"isa", "avx2"},
                {"precision", "f32"},
                {"samples_per_second", speed},
                {"phase_seconds", parts(0.002)}};
  for (const double one : rounds) {
    document["rounds"].push_back(
        {{"samples_per_second", one}, {"phase_seconds", parts(0.2 / one)}});
  }
  return document;
}

TEST_F(Compare, ReadsAMeasurementOfTraining) {
  const Side side = read_side(file("t.json", training(100, {99, 101}).dump(2)));
  EXPECT_EQ(side.kind, Kind::training);
  std::vector<std::string> names;
  for (const Row& row : side.rows) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"samples/s", "data (ms)", "forward (ms)",
                                             "backward (ms)", "update (ms)"}))
      << "no sync, which took no time";
  EXPECT_TRUE(side.rows[0].is_rate);
  EXPECT_DOUBLE_EQ(side.rows[0].figure.value, 100);
  const double half = 12.7062047 * std::log(101 / 99.0) / 2;
  EXPECT_NEAR(std::log(side.rows[0].figure.high / 100), half, 1e-8);
  EXPECT_DOUBLE_EQ(side.rows[2].figure.value, 2);
  EXPECT_NEAR(std::log(side.rows[2].figure.high / 2), half, 1e-8);
  EXPECT_EQ(side.rows[3].figure.high, 4) << "all rounds alike";
  EXPECT_EQ(side.lines.front().curve.y, (std::vector<double>{99, 101}));
  EXPECT_EQ(side.traits.front().said, "on avx2");
}

TEST_F(Compare, ReadsAnOldMeasurementOfTrainingAndOneOfAGpu) {
  json document = training(100, {});
  EXPECT_FALSE(read_side(file("old.json", document.dump())).rows[0].figure.has_interval());
  document["device"] = "cuda:0";
  EXPECT_EQ(read_side(file("gpu.json", document.dump())).rows.size(), 1u);
}

TEST_F(Compare, LetsATrainingThatDoesNotCountDecideNothing) {
  json document = training(100, {99, 101});
  document.update({{"counts", false}, {"why_not", "the machine was busy"}});
  for (const Row& row : read_side(file("t.json", document.dump())).rows) {
    EXPECT_EQ(row.why_not, "the machine was busy") << row.name;
  }
  document["why_not"] = "";
  for (const Row& row : read_side(file("t.json", document.dump())).rows) {
    EXPECT_EQ(row.why_not, "the benchmark says so") << row.name;
  }
}

/// What `bench train --replicas 1,2 --json` writes; two replicas have a speed of `two`.
json scaling(double two) {
  const auto row = [](int replicas, double speed) {
    const json parts{{"compute", 0.01}, {"sums", 0.001}, {"waiting", 0},
                     {"update", 0.001}, {"data", 0},     {"between", 1e-5}};
    json one{
        {"replicas", replicas},
        {"counts", true},
        {"why_not", ""},
        {"samples_per_second", {{"value", speed}, {"low", speed * 0.99}, {"high", speed * 1.01}}},
        {"phase_seconds", parts}};
    for (int i = 0; i < 3; ++i) one["rounds"].push_back({{"phase_seconds", parts}});
    return one;
  };
  return {{"model", "mlp"},
          {"device", "cpu:0"},
          {"batch_size", 64},
          {"replicas_as", "threads"},
          {"scaling", {{"batch", "fixed"}, {"rows", {row(1, 100), row(2, two)}}}}};
}

TEST_F(Compare, ReadsNumbersOfReplicas) {
  json document = scaling(180);
  document["/scaling/rows/1"_json_pointer].update({{"counts", false}, {"why_not", "busy"}});
  const Side side = read_side(file("s.json", document.dump()));
  EXPECT_EQ(side.kind, Kind::scaling);
  ASSERT_EQ(side.rows.size(), 8u) << "samples/s, and three parts that took any time";
  EXPECT_EQ(side.rows[0].group, "1 replica");
  EXPECT_EQ(side.rows[4].group, "2 replicas");
  EXPECT_EQ(side.rows[4].name, "samples/s");
  EXPECT_TRUE(side.rows[4].is_rate);
  EXPECT_DOUBLE_EQ(side.rows[4].figure.value, 180);
  EXPECT_DOUBLE_EQ(side.rows[4].figure.low, 180 * 0.99);
  EXPECT_EQ(side.rows[5].name, "compute (ms)");
  EXPECT_DOUBLE_EQ(side.rows[5].figure.value, 10);
  EXPECT_EQ(side.rows[0].why_not, "");
  EXPECT_EQ(side.rows[7].why_not, "busy");
  EXPECT_EQ(side.lines.front().curve.x, (std::vector<double>{1, 2}));
}

TEST_F(Compare, ComparesNumbersOfReplicasByThem) {
  json other = scaling(150);
  other["replicas_as"] = "processes";
  const Comparison comparison = compared(read_side(file("a.json", scaling(180).dump())),
                                         read_side(file("b.json", other.dump())));
  const Tally tally = tally_of(comparison);
  EXPECT_EQ(tally.worse, 1u);
  EXPECT_EQ(tally.equal, 7u);
  EXPECT_NEAR(comparison.pairs[*tally.worst].ratio.value, 1.2, 1e-12);
  ASSERT_EQ(comparison.unlike.size(), 1u);
  EXPECT_EQ(comparison.unlike[0].of, "replicas");
  EXPECT_TRUE(answer_of(comparison)
                  .starts_with("1 of 8 rows is worse, most of all samples/s of 2 replicas by 1.2"))
      << answer_of(comparison);
  EXPECT_NE(comparison_page(comparison).find("id=\"rate\""), std::string::npos);
}

TEST_F(Compare, NamesRowAndFieldOfNumbersOfReplicas) {
  const auto changed = [&](const char* pointer, const json& value) {
    json document = scaling(180);
    document[json::json_pointer(pointer)] = value;
    return refusal(file("s.json", document.dump()));
  };
  EXPECT_TRUE(says(changed("/scaling", 3), {"s.json: 'scaling' is no object; it should hold"}));
  EXPECT_TRUE(says(changed("/scaling/rows", json::array()), {"'rows' is no list of rows"}));
  EXPECT_TRUE(says(changed("/scaling/rows/0", 3), {"a row of 'rows' is no object"}));
  EXPECT_TRUE(says(changed("/scaling/rows/1/replicas", 1),
                   {"s.json: row 2 of 'rows': 1 replicas are there twice"}));
  EXPECT_TRUE(says(changed("/scaling/rows/1/replicas", 1e300), {"'replicas' is not a whole"}));
  EXPECT_TRUE(says(changed("/scaling/rows/1/samples_per_second", 3),
                   {"row 2 of 'rows': 'samples_per_second' is no object"}));
  EXPECT_TRUE(says(changed("/scaling/rows/1/samples_per_second/value", 0), {"is not above 0"}));
  EXPECT_TRUE(says(changed("/scaling/rows/1/samples_per_second/low", 500),
                   {"'value' does not lie between 'low' and 'high'"}));
  EXPECT_TRUE(
      says(changed("/scaling/rows/0/phase_seconds/sums", "<b>"), {"'sums' is not a number"}));
  EXPECT_TRUE(says(changed("/scaling/rows/0/rounds/1/phase_seconds", nullptr),
                   {"row 1 of 'rows': 'phase_seconds' is no object"}));
}

std::string epoch(int number, double seconds, double speed, double accuracy) {
  return json{{"kind", "epoch"},           {"epoch", number},
              {"seconds", seconds},        {"samples_per_second", speed},
              {"test_accuracy", accuracy}, {"test_loss", 0.25}}
             .dump() +
         "\n";
}

TEST_F(Compare, ReadsTheEpochsOfARunWithoutItsWarmUp) {
  std::filesystem::create_directories(path("run"));
  file("run/metrics.jsonl", epoch(1, 100, 1, 0.1) + epoch(2, 4, 100, 0.5) + epoch(3, 6, 50, 0.875));
  file("run/run.json",
       R"({"ringlet":"1","build":{"commit":"c"},"machine":{"cpu":{"name":"P","cores":1}}})");
  const Side side = read_side(path("run"));
  EXPECT_EQ(side.kind, Kind::run);
  ASSERT_EQ(side.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(side.rows[0].figure.value, 5);
  EXPECT_NEAR(std::log(side.rows[0].figure.high / 5), 12.7062047 * std::log(1.5) / 2, 1e-8);
  EXPECT_NEAR(side.rows[1].figure.value, 2 / (0.01 + 0.02), 1e-12);
  EXPECT_NEAR(std::log(side.rows[1].figure.high / side.rows[1].figure.value),
              12.7062047 * std::log(2.0) / 2, 1e-7);
  EXPECT_EQ(side.shown[0].text, "87.50 %");
  EXPECT_EQ(side.shown[1].text, "0.25");
  EXPECT_EQ(side.lines[0].curve.y, (std::vector<double>{1, 100, 50}));
  EXPECT_EQ(side.traits[0].said, "on P, 1 core");
  EXPECT_EQ(side.traits[1].said, "by a build of c");

  file("run/metrics.jsonl", epoch(1, 4, 100, 0.5) + epoch(2, 6, 50, 0.875));
  EXPECT_DOUBLE_EQ(read_side(path("run")).rows[0].figure.value, 5) << "of two none is left out";
  file("run/metrics.jsonl", epoch(1, 4, 100, 0.5));
  EXPECT_FALSE(read_side(path("run")).rows[0].figure.has_interval());
}

TEST_F(Compare, LeavesOutAnEpochOfARunThatWasNotFinished) {
  std::filesystem::create_directories(path("run"));
  const auto steps = [](int of_epoch, int first, int count) {
    std::string lines;
    for (int step = first; step < first + count; ++step) {
      lines += json{{"kind", "step"}, {"epoch", of_epoch}, {"step", step},
                    {"loss", 1},      {"lr", 0.1},         {"samples", 8}}
                   .dump() +
               "\n";
    }
    return lines;
  };
  file("run/metrics.jsonl", steps(1, 1, 4) + epoch(1, 9, 100, 0.1) + steps(2, 5, 4) +
                                epoch(2, 4, 100, 0.5) + steps(3, 9, 4) + epoch(3, 6, 100, 0.5) +
                                steps(4, 13, 1) + epoch(4, 1, 80, 0.875));
  const Side side = read_side(path("run"));
  EXPECT_DOUBLE_EQ(side.rows[0].figure.value, 5);
  EXPECT_DOUBLE_EQ(side.rows[1].figure.value, 100);
  EXPECT_EQ(side.shown[0].text, "87.50 %") << "it was tested all the same";
}

TEST_F(Compare, NamesFileRowAndFieldOfWhatItCannotRead) {
  EXPECT_TRUE(says(refusal(file("e.json", " \n")), {"e.json is empty; name a file of"}));
  EXPECT_TRUE(says(refusal(path("none.json")), {"none.json"}));
  EXPECT_TRUE(says(refusal(file("f.json", "{\"a\": 1}")), {"f.json: row 1: 'engine' is missing"}));
  EXPECT_TRUE(says(refusal(file("f.json", "\x89PNG\r\n")), {"f.json: this is not valid JSON"}));

  const json good = training(100, {99, 101});
  const auto changed = [&](const char* pointer, const json& value) {
    json document = good;
    document[json::json_pointer(pointer)] = value;
    return refusal(file("t.json", document.dump()));
  };
  EXPECT_TRUE(
      says(changed("/samples_per_second", 0), {"t.json: 'samples_per_second' is not above 0"}));
  EXPECT_TRUE(says(changed("/samples_per_second", "x"), {"'samples_per_second' is not a number"}));
  EXPECT_TRUE(says(changed("/phase_seconds/sync", -1), {"t.json: 'sync' is below 0"}));
  EXPECT_TRUE(says(changed("/phase_seconds", 3), {"t.json: 'data' is missing"}));
  EXPECT_TRUE(says(changed("/rounds", 3), {"t.json: 'rounds' is not a list"}));
  EXPECT_TRUE(says(changed("/rounds/1", 3), {"t.json: row 2 of 'rounds': it is no object"}));
  EXPECT_TRUE(says(changed("/rounds/1/samples_per_second", nullptr),
                   {"t.json: row 2 of 'rounds': 'samples_per_second' is not a number"}));
  EXPECT_TRUE(says(changed("/rounds/0/phase_seconds/data", "x"),
                   {"t.json: row 1 of 'rounds': 'data' is not a number"}));
  std::string text = good.dump();
  text.replace(text.find("100.0"), 5, "NaN");
  EXPECT_TRUE(
      says(refusal(file("t.json", text)), {"t.json: 'samples_per_second' is not valid JSON"}));
  EXPECT_TRUE(
      says(refusal(file("t.json", good.dump().substr(0, 40))), {"t.json: '", "is not valid JSON"}));

  std::filesystem::create_directories(path("run"));
  EXPECT_TRUE(says(refusal(path("run")), {"holds no metrics.jsonl"}));
  file("run/metrics.jsonl", "");
  EXPECT_TRUE(says(refusal(path("run")), {"metrics.jsonl has no whole epoch yet"}));
  file("run/metrics.jsonl", epoch(1, 1, 1, 1) + epoch(2, 0, 1, 1));
  EXPECT_TRUE(says(refusal(path("run")), {"metrics.jsonl: epoch 2: 'seconds' is not above 0"}));
  file("run/metrics.jsonl", epoch(1, 1, -3, 1));
  EXPECT_TRUE(says(refusal(path("run")), {"epoch 1: 'samples_per_second' is not above 0"}));
  file("run/metrics.jsonl", epoch(1, 1, 0, 1));
  EXPECT_TRUE(
      says(refusal(path("run")), {"metrics.jsonl has no epoch in which the run learnt; compare"}));
}

// A run that is resumed after its last step tests again, and learns nothing.
TEST_F(Compare, LeavesEpochsOutThatWereOnlyTested) {
  std::filesystem::create_directories(path("run"));
  file("run/metrics.jsonl", epoch(1, 4, 100, 0.5) + epoch(2, 0.1, 0, 0.5));
  const Side side = read_side(path("run"));
  EXPECT_DOUBLE_EQ(side.rows.at(0).figure.value, 4);
  EXPECT_DOUBLE_EQ(side.rows.at(1).figure.value, 100);
}

TEST_F(Compare, SaysThatNothingCanBeSaidWhereNoRowCounts) {
  json row = row_of("ring", 4096, 1, 1.5);
  row.update({{"counts", false}, {"why_not", "busy"}});
  const std::string busy = rows("a.json", {row}),
                    quiet = rows("b.json", {row_of("ring", 4096, 1, 1)});
  const Comparison comparison = compared(read_side(quiet), read_side(busy));
  EXPECT_EQ(answer_of(comparison), "Nothing can be said: none of 1 row counts");
  EXPECT_EQ(others_of(comparison), "0 better, 0 equal, 1 not counted");
}

TEST_F(Compare, RefusesWhatHasNothingInCommon) {
  const std::string a = rows("a.json", {row_of("ring", 4096, 1, 0)});
  const auto refused = [&](const std::string& b) {
    return message_of<FileError>([&] { compared(read_side(a), read_side(b)); });
  };
  EXPECT_TRUE(says(refused(file("t.json", training(1, {}).dump())),
                   {"a.json holds measurements of 'ringlet bench all-reduce' and ",
                    "t.json holds a measurement of 'ringlet bench train'; compare two of a kind"}));
  EXPECT_TRUE(says(refused(rows("b.json", {row_of("ring", 8192, 1, 0)})),
                   {"a.json and ", "b.json have no row in common"}));
}

/// Two files whose ratios are 1.2, 1.02 and 0.8, with intervals of hypot(ln 1.03, ln 1.04).
class CompareTwo : public Compare {
 protected:
  Comparison two(const std::vector<json>& more_of_b = {}) const {
    std::vector<json> of_b{row_of("ring", 4096, 10.2, 1.04), row_of("tree", 4096, 16, 1.04),
                           row_of("ring", 16384, 24, 1.04)};
    of_b.insert(of_b.end(), more_of_b.begin(), more_of_b.end());
    return compared(
        read_side(rows("old.json", {row_of("ring", 16384, 20, 1.03), row_of("ring", 4096, 10, 1.03),
                                    row_of("tree", 4096, 20, 1.03), row_of("naive", 4096, 1, 1.03),
                                    row_of("naive", 8192, 1, 1.03)})),
        read_side(rows("new.json", of_b)));
  }
};

TEST_F(CompareTwo, SayWhatIsWorseInWords) {
  const std::string text = to_text(two());
  const std::string expected = "A  " + path("old.json") + "\nB  " + path("new.json") + "\n" +
                               R"(
2 ranks as threads over local, f32 sum in place
        size      A us             B us          ratio  95 % interval
ring      4K        10  ±3.0%      10.2  ±3.9%   1.020  0.971 to 1.071   equal
ring     16K        20  ±3.0%        24  ±3.9%   1.200  1.142 to 1.260   worse
tree      4K        20  ±3.0%        16  ±3.9%   0.800  0.762 to 0.840   better

only in old.json: naive, 2 ranks as threads over local, f32 sum in place, 4K to 8K (2 rows)

1 of 3 rows is worse, most of all ring 16K by 1.200 (1.142 to 1.260)
1 better, 1 equal
)";
  EXPECT_EQ(text, expected);
}

TEST_F(CompareTwo, FailWhereAWholeIntervalIsBeyondTheLimit) {
  const Comparison comparison = two();
  EXPECT_EQ(beyond(comparison, 1.14), std::vector<std::size_t>{1});
  EXPECT_EQ(beyond(comparison, 1.15), std::vector<std::size_t>{});
}

TEST_F(CompareTwo, LeaveRowsThatDoNotCountUndecided) {
  json busy = row_of("naive", 8192, 50, 1.04);
  busy.update({{"counts", false}, {"why_not", "rounds differ"}});
  const Comparison comparison = two({busy});
  const Tally tally = tally_of(comparison);
  EXPECT_EQ(std::tuple(tally.worse, tally.better, tally.equal, tally.not_counted),
            std::tuple(1u, 1u, 1u, 1u));
  EXPECT_EQ(beyond(comparison, 1.05).size(), 1u);
  EXPECT_EQ(verdict_words(comparison.pairs.back()), "does not count");
  EXPECT_EQ(notes_of(comparison).front(), "new.json: naive 8K does not count: rounds differ");
  EXPECT_EQ(others_of(comparison), "1 better, 1 equal, 1 not counted");
  EXPECT_EQ(answer_of(comparison),
            "1 of 3 rows that count is worse, most of all ring 16K by 1.200 (1.142 to 1.260)");
  const std::string page = comparison_page(comparison);
  for (const char* part :
       {"band: its interval; rings: do not count</small>", "class=\"series c0 hollow\"",
        "does not count</td><td class=\"text why\">B: rounds differ</td>"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  // Over no size a ratio of naive counts, and of its times A's alone.
  const auto naive = page.find("id=\"time-1-3\"");
  EXPECT_NE(page.find("data-name=\"old.json\" data-x=\"8192\"", naive), std::string::npos);
  EXPECT_NE(page.find("data-name=\"new.json\" data-x=\"\"", naive), std::string::npos);
  EXPECT_EQ(page.find("data-y=\"50\""), std::string::npos);
}

TEST_F(CompareTwo, SayWhereThereIsNoInterval) {
  const Comparison comparison = two({row_of("naive", 4096, 1.5, 0)});
  EXPECT_EQ(warnings_of(comparison),
            std::vector<std::string>{"new.json has rows without an interval, measured once each: "
                                     "these are better or worse as plain ratios"});
  EXPECT_TRUE(to_text(comparison)
                  .find("naive      4K         1  ±3.0%       1.5          1.500  worse; no "
                        "interval: one measurement each\n") != std::string::npos)
      << to_text(comparison);
  EXPECT_EQ(others_of(comparison),
            "1 better, 1 equal; 1 row without an interval, better or worse as plain ratios");
  EXPECT_EQ(beyond(comparison, 1.4), std::vector<std::size_t>{3}) << "the plain ratio";
}

TEST_F(CompareTwo, AreReadByPrograms) {
  const json told = to_json(two({row_of("tree", 1 << 20, 3, 1.04)}), 1.05);
  EXPECT_EQ(told["fail_over"], 1.05);
  EXPECT_EQ(std::tuple(told["better"], told["worse"], told["equal"]), std::tuple(1, 1, 1));
  const json& row = told["rows"][1];
  EXPECT_EQ(row["name"], "ring");
  EXPECT_EQ(row["bytes"], 16384);
  EXPECT_EQ(row["verdict"], "worse");
  EXPECT_EQ(row["fails"], true);
  EXPECT_EQ(row["a"]["value"], 20);
  EXPECT_NEAR(row["ratio"]["low"].get<double>(), 1.1424894061, 1e-9);
  EXPECT_NEAR(row["ratio"]["high"].get<double>(), 1.2604055603, 1e-9);
  EXPECT_EQ(told["rows"][0]["fails"], false);
  EXPECT_EQ(told["only_in_a"].size(), 2u);
  EXPECT_EQ(told["only_in_b"][0]["bytes"], 1 << 20);
  EXPECT_TRUE(to_json(two(), {})["fail_over"].is_null());
}

TEST_F(CompareTwo, AreLinesOfAPageNamedByTheirFiles) {
  const std::string page = comparison_page(two());
  for (const char* part :
       {"<h1>1 of 3 rows is worse, most of all ring 16K by 1.200", "id=\"ratio-1\"",
        "id=\"time-1-1\"", "id=\"time-1-2\"", "<title>old.json</title>", "<title>new.json</title>",
        "<td class=\"text worse\">worse</td>", "<td class=\"text better\">better</td>",
        "only in old.json"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("id=\"time-1-3\""), std::string::npos) << "naive has no like";
}

TEST_F(Compare, DrawsRoundsAndEpochsOfBothFiles) {
  const std::string a = file("before.json", training(100, {99, 101}).dump());
  const std::string b = file("after.json", training(90, {89, 91}).dump());
  const std::string page = comparison_page(compared(read_side(a), read_side(b)));
  for (const char* part :
       {"id=\"speed\"", "<title>before.json</title>", "<title>after.json</title>",
        "<td>samples/s</td>", "<td>forward (ms)</td>"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("nothing was recorded"), std::string::npos);
}

TEST_F(Compare, SaysWhatIsUnlike) {
  const json machine{
      {"processor", "P"}, {"cores", 2}, {"instruction_set", "avx2"}, {"ringlet", "1"}};
  json other = machine;
  other["processor"] = "Q";
  const std::vector<json> one{row_of("ring", 4096, 1, 0)};
  json pinned = row_of("ring", 4096, 1, 0);
  pinned["pinned"] = true;
  const auto unlike = [&](const std::string& a, const std::string& b) {
    std::vector<std::string> texts;
    for (const Unlike& found : compared(read_side(a), read_side(b)).unlike)
      texts.push_back(found.text);
    return texts;
  };
  using Texts = std::vector<std::string>;
  const std::string a = rows("a.json", one, {{"machine", machine}});
  EXPECT_EQ(unlike(a, a), Texts{});
  EXPECT_EQ(
      unlike(a, rows("b.json", {pinned}, {{"machine", other}})),
      (Texts{"unlike machines: a.json was measured on P, 2 cores, avx2, b.json on Q, 2 cores, "
             "avx2",
             "unlike pinning: a.json was measured with ranks not pinned, b.json with ranks "
             "pinned"}));
  json four = row_of("ring", 4096, 1, 0);
  four["ranks"] = 4;
  EXPECT_EQ(unlike(a, rows("c.json", {one.front(), four})),
            (Texts{"unlike machines: a.json was measured on P, 2 cores, avx2, c.json does not say",
                   "unlike versions: a.json was measured by ringlet 1, c.json does not say",
                   "unlike ranks: a.json was measured with 2 ranks, c.json with 2, 4 ranks"}));
  const auto beside = [&](const std::string& name, double shared_core) {
    json row = one.front();
    row["shared_core"] = shared_core;
    return rows(name, {row}, {{"machine", machine}});
  };
  const std::string alone = beside("alone.json", 0.1), shared = beside("shared.json", 0.8);
  EXPECT_EQ(
      unlike(alone, shared),
      (Texts{"unlike use of cores: alone.json was measured on cores of their own, shared.json on "
             "cores that were shared"}));
  EXPECT_EQ(unlike(shared, beside("more.json", 1)), Texts{});
  EXPECT_EQ(unlike(alone, beside("half.json", 0.4)), Texts{});
  EXPECT_EQ(unlike(a, shared), Texts{}) << "an older file";
  const auto trained = [&](const std::string& name, double shared_core) {
    json document = training(100, {99, 101});
    document["shared_core"] = shared_core;
    return file(name, document.dump());
  };
  EXPECT_EQ(unlike(trained("s.json", 1), trained("t.json", 0)),
            (Texts{"unlike use of cores: s.json was measured on cores that were shared, t.json on "
                   "cores of their own"}));
}

TEST_F(Compare, NamesFilesOfOneNameByTheirPaths) {
  for (const char* name : {"x", "y"}) std::filesystem::create_directories(path(name));
  const std::vector<json> one{row_of("ring", 4096, 1, 0)};
  const Comparison comparison =
      compared(read_side(rows("x/a.json", one)), read_side(rows("y/a.json", one)));
  EXPECT_EQ(comparison.names, (std::array{path("x/a.json"), path("y/a.json")}));
}

TEST(CompareText, NamesABuildByTheDigitsThatTell) {
  const std::string hash = "2d58b2e5aa10ffffffffffffffffffffffffffff";
  EXPECT_EQ(build_words(hash, "GNU 12", ""), "by a build of 2d58b2e5aa10, GNU 12");
  EXPECT_EQ(build_words(hash + "-dirty", "", "Debug"), "by a build of 2d58b2e5aa10-dirty, Debug");
  EXPECT_EQ(build_words("v1", "", ""), "by a build of v1");
  EXPECT_EQ(build_words("", "", ""), "");
}

TEST(CompareText, HasNumbersThatOneReads) {
  EXPECT_EQ(text_of_number(1.20349), "1.203");
  EXPECT_EQ(text_of_number(123456.7), "123457");
  EXPECT_EQ(text_of_number(1e-5), "1.00e-05");
  EXPECT_EQ(text_of_number(INFINITY), "-");
  EXPECT_EQ(text_of_spread({10, 9, 11.5}), "\u00b112.5%");
  EXPECT_EQ(text_of_spread({10, 9.5, 10.5}), "\u00b15.0%");
  EXPECT_EQ(text_of_spread({10}), "");
  EXPECT_EQ(text_of_ratio({12345}), "1.23e+04");
  EXPECT_EQ(text_of_ratio({INFINITY}), "-");
}

}  // namespace
}  // namespace ringlet::app::compare
