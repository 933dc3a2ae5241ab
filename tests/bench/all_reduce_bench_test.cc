// The benchmark of all-reduce without its command: sizes, numbers that are exact, errors that it
// finds, how rows are written and read, and what is concluded from them.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/copy_bandwidth.h"
#include "bench/all_reduce/core_distance.h"
#include "bench/all_reduce/measure.h"
#include "bench/all_reduce/pinning.h"
#include "bench/all_reduce/read_all.h"
#include "bench/all_reduce/sizes.h"
#include "bench/all_reduce/streaming_copy.h"
#include "bench/all_reduce/test_pattern.h"
#include "comm/all_reduce/ring.h"
#include "tests/support/files.h"
#include "train/files/atomic_file.h"

namespace ringlet::bench {
namespace {

using ringlet::testing::TemporaryDirectory;
using ringlet::testing::write_file;

TEST(Sizes, AreReadAndWrittenInPowersOf1024) {
  EXPECT_EQ(parse_size("4096"), 4096);
  EXPECT_EQ(parse_size("4K"), 4096);
  EXPECT_EQ(parse_size("4k"), 4096);
  EXPECT_EQ(parse_size("4KiB"), 4096);
  EXPECT_EQ(parse_size("64M"), 64 << 20);
  EXPECT_EQ(parse_size("1G"), 1 << 30);
  for (const char* bad : {"", "K", "4X", "4Kb", "-4", "4.5K", "4 K", "0x10", "9999999999G"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
  EXPECT_EQ(size_text(4096), "4K");
  EXPECT_EQ(size_text(1536), "1536");
  EXPECT_EQ(size_text(3 << 20), "3M");
}

using Sizes = std::vector<std::int64_t>;

TEST(Sizes, GrowByAFactorOrAStepInWholeElements) {
  EXPECT_EQ(sizes_of({.begin = 4, .end = 64, .factor = 4}, 4), (Sizes{4, 16, 64}));
  EXPECT_EQ(sizes_of({.begin = 4, .end = 63, .factor = 4}, 4), (Sizes{4, 16}));
  EXPECT_EQ(sizes_of({.begin = 8, .end = 20, .step = 6}, 4), (Sizes{8, 12, 20}));
  EXPECT_EQ(sizes_of({.begin = 8, .end = 11, .step = 1}, 4), (Sizes{8}));
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_EQ(sizes_of({.begin = kHuge, .end = kHuge, .factor = 4}, 4), (Sizes{kHuge}));
  EXPECT_THROW(sizes_of({.begin = 8, .end = 4}, 4), ContractError);
  EXPECT_THROW(sizes_of({.begin = 2, .end = 4}, 4), ContractError);
}

template <class T>
std::vector<T> input_of(const TestPattern& pattern, std::int64_t iteration, std::size_t count) {
  std::vector<T> data(count);
  pattern.write_input(iteration, data.data(), static_cast<std::int64_t>(count * sizeof(T)));
  return data;
}

constexpr std::size_t kCount = 20000;  // more than a table holds
constexpr std::int64_t kBytes = kCount * 4;

std::vector<float> sum_of(int ranks, ReduceOp op, std::int64_t iteration) {
  std::vector<float> sum(kCount);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto mine = input_of<float>(TestPattern(DType::f32, op, rank, ranks), iteration, kCount);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] += mine[i];
  }
  return sum;
}

TEST(TestPatterns, KnowTheirSum) {
  const TestPattern pattern(DType::f32, ReduceOp::sum, 1, 3);
  std::vector<float> sum = sum_of(3, ReduceOp::sum, 7);
  EXPECT_EQ(pattern.count_wrong(7, sum.data(), kBytes), 0);
  sum[0] += 1;
  sum[kCount - 1] += 1;
  EXPECT_EQ(pattern.count_wrong(7, sum.data(), kBytes), 2);
}

TEST(TestPatterns, KnowTheMeanWhichIsExact) {
  const TestPattern pattern(DType::f32, ReduceOp::mean, 0, 3);
  std::vector<float> mean = sum_of(3, ReduceOp::mean, 0);
  for (float& x : mean) x /= 3;
  EXPECT_EQ(pattern.count_wrong(0, mean.data(), kBytes), 0);
}

TEST(TestPatterns, KnowTheLeastOfSomeNegativeNumbers) {
  const TestPattern first(DType::i32, ReduceOp::min, 0, 2), second(DType::i32, ReduceOp::min, 1, 2);
  auto least = input_of<std::int32_t>(first, 5, kCount);
  const auto others = input_of<std::int32_t>(second, 5, kCount);
  for (std::size_t i = 0; i < kCount; ++i) least[i] = std::min(least[i], others[i]);
  EXPECT_EQ(first.count_wrong(5, least.data(), kBytes), 0);
  EXPECT_LT(*std::min_element(least.begin(), least.end()), 0);
}

TEST(TestPatterns, WriteNarrowFloatsWithTheirOwnBits) {
  // The same whole numbers in every type, so each can be told from f32's.
  const auto f32 = input_of<float>(TestPattern(DType::f32, ReduceOp::min, 0, 2), 3, 1000);
  const auto bf16 = input_of<std::uint16_t>(TestPattern(DType::bf16, ReduceOp::min, 0, 2), 3, 1000);
  const auto f16 = input_of<std::uint16_t>(TestPattern(DType::f16, ReduceOp::min, 0, 2), 3, 1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::uint32_t wide = static_cast<std::uint32_t>(bf16[i]) << 16U;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    EXPECT_EQ(value, f32[i]);
    const int exponent = f16[i] >> 10U & 31U, fraction = f16[i] & 1023U;
    const float half =
        exponent == 0 ? 0 : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    EXPECT_EQ((f16[i] & 0x8000U) != 0 ? -half : half, f32[i]);
  }
}

TEST(TestPatterns, AFormerResultIsWrong) {
  const TestPattern pattern(DType::f32, ReduceOp::sum, 0, 2);
  const std::vector<float> sum = sum_of(2, ReduceOp::sum, 7);
  EXPECT_GT(pattern.count_wrong(8, sum.data(), kBytes), kBytes / 4 * 9 / 10);
}

TEST(TestPatterns, RefuseWhatTheTypeCannotHold) {
  EXPECT_THROW(TestPattern(DType::bf16, ReduceOp::sum, 0, 512), ContractError);
  EXPECT_THROW(TestPattern(DType::bf16, ReduceOp::mean, 0, 32), ContractError);
  EXPECT_THROW(TestPattern(DType::u8, ReduceOp::sum, 0, 2), ContractError);
  EXPECT_NO_THROW(TestPattern(DType::bf16, ReduceOp::max, 0, 512));
}

/// The sum that read_all() promises, word by word and byte by byte.
std::uint64_t sum_plainly(const std::uint8_t* data, std::int64_t bytes) {
  std::uint64_t sum = 0;
  std::int64_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + at, 8);
    sum += word;
  }
  for (; at < bytes; ++at) sum += data[at];
  return sum;
}

/// Bytes of which no two runs of a vector have the same sum, and none is 0.
std::vector<std::uint8_t> mixed_bytes(std::size_t count) {
  std::vector<std::uint8_t> data(count);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : data) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 24U | 1U);
  }
  return data;
}

TEST(ReadAll, SumsTheSameByEveryLoopAtAnyLengthAndAddress) {
  constexpr std::int64_t kLongest = 1100;  // blocks of every loop, and what is left of them
  const auto data = mixed_bytes(kLongest + 64);
  const auto loops = read_loops();
  EXPECT_STREQ(loops.back().name, "portable");
  for (const ReadLoop& loop : loops) {
    for (const int offset : {0, 1, 4, 7, 31, 63}) {
      for (std::int64_t bytes = 0; bytes <= kLongest; ++bytes) {
        const std::uint8_t* const begin = data.data() + offset;
        ASSERT_EQ(loop.read(begin, bytes), sum_plainly(begin, bytes))
            << loop.name << ": " << bytes << " bytes, " << offset << " from the allocation's begin";
      }
    }
  }
  EXPECT_EQ(read_all(data.data(), kLongest), sum_plainly(data.data(), kLongest));
}

TEST(ReadAll, DependsOnEveryByteByEveryLoop) {
  constexpr std::int64_t kOddBytes = 2 * 256 + 67;
  auto data = mixed_bytes(kOddBytes);
  for (const ReadLoop& loop : read_loops()) {
    const std::uint64_t sum = loop.read(data.data(), kOddBytes);
    for (std::uint8_t& byte : data) {
      ++byte;
      EXPECT_NE(loop.read(data.data(), kOddBytes), sum)
          << loop.name << ", byte " << &byte - data.data();
      --byte;
    }
  }
}

TEST(StreamingCopy, Copies) {
  if constexpr (kHasStreamingCopy) {
    alignas(64) char from[256], to[256] = {};
    for (int i = 0; i < 256; ++i) from[i] = static_cast<char>(i);
    streaming_copy(from, to, sizeof from);
    EXPECT_EQ(std::memcmp(from, to, sizeof from), 0);
  } else {
    GTEST_SKIP() << "this processor has no streaming stores";
  }
}

TEST(CoreDistances, AreMeasuredAndNamed) {
  const auto distance = measure_core_distance();
  if (!distance) GTEST_SKIP() << "one processor";
  EXPECT_GT(distance->nanoseconds, 1);
  EXPECT_STREQ(CoreDistance{25}.word(), "near");
  EXPECT_STREQ(CoreDistance{156}.word(), "far");
}

AllReduceBenchOptions quick_options(int ranks) {
  AllReduceBenchOptions options;
  options.sizes = {4, 4096};
  options.strategies = {"ring"};
  options.warm_up = 1;
  options.iterations = 3;
  options.execution.devices.assign(static_cast<std::size_t>(ranks), DeviceId{});
  options.execution.overlap = false;
  return options;
}

/// Does what ring does, and then something else to the result.
class RingAndMore : public comm::AllReduce {
 public:
  using More = std::function<void(int rank, View data)>;
  RingAndMore(comm::Transport& transport, More more)
      : AllReduce(transport),
        ring_(comm::make_all_reduce("ring", transport)),
        more_(std::move(more)) {}
  const char* name() const override { return "ring and more"; }
  void run(Stream& stream, View data, ReduceOp op) override {
    ring_->run(stream, data, op);
    more_(rank(), data);
  }
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override {
    return ring_->elements_sent(count);
  }

 private:
  std::unique_ptr<comm::AllReduce> ring_;
  More more_;
};

/// Ringlet's strategies and RingAndMore.
comm::Strategies with(const RingAndMore::More& more) {
  comm::Strategies strategies;
  strategies.add({"ring and more", comm::Needs::nothing, comm::RingAllReduce::path_cost,
                  [&more](comm::Transport& transport) {
                    return std::make_unique<RingAndMore>(transport, more);
                  }});
  return strategies;
}

std::vector<Measurement> measure_with(AllReduceBenchOptions options,
                                      const RingAndMore::More& more) {
  options.strategies = {"ring and more"};
  options.execution.strategies = with(more);
  return measure_all_reduce(options, [](const Measurement&) {});
}

TEST(MeasureAllReduce, TellsEachRowAndReturnsAll) {
  AllReduceBenchOptions options = quick_options(3);
  options.strategies = {"naive", "ring", "doubling"};
  std::vector<std::string> told;
  const auto rows =
      measure_all_reduce(options, [&](const Measurement& row) { told.push_back(row.strategy); });
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(told.size(), 6u);
  for (const Measurement& row : rows) {
    EXPECT_TRUE(row.right()) << row.strategy;
    EXPECT_EQ(row.ranks, 3);
    EXPECT_EQ(row.iterations, 3);
    EXPECT_EQ(row.hashes.size(), 3u);
    EXPECT_GT(row.min_us, 0);
    EXPECT_LE(row.min_us, row.median_us);
    EXPECT_LE(row.median_us, row.p99_us);
  }
  EXPECT_EQ(rows[3].bytes, 4096);
  EXPECT_EQ(rows[3].count, 1024);
  EXPECT_EQ(rows[0].hashes, rows[1].hashes);  // the same numbers, whichever strategy
}

TEST(MeasureAllReduce, KnowsTheExactResultOfEveryTypeAndOperation) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
    for (const ReduceOp op : kReduceOps) {
      AllReduceBenchOptions options = quick_options(3);
      options.strategies = {"ring", "two-shot", "halving-doubling"};
      options.type = type;
      options.op = op;
      for (const Measurement& row : measure_all_reduce(options, [](const Measurement&) {})) {
        EXPECT_TRUE(row.right()) << row.strategy << " " << row.type << " " << row.op;
        EXPECT_EQ(row.count * size_of(type), row.bytes);
      }
    }
  }
}

TEST(MeasureAllReduce, PinsRanksToAProcessorEachWhereThereAreEnough) {
  if (!can_pin(2)) GTEST_SKIP() << "one processor";
  AllReduceBenchOptions options = quick_options(2);
  for (const bool pin : {true, false}) {
    options.pin = pin;
    std::array<int, 2> allowed{}, at{};
    const auto rows = measure_with(options, [&](int rank, View) {
      cpu_set_t set;
      sched_getaffinity(0, sizeof set, &set);
      allowed[static_cast<std::size_t>(rank)] = CPU_COUNT(&set);
      at[static_cast<std::size_t>(rank)] = sched_getcpu();
    });
    EXPECT_EQ(rows.front().pinned, pin);
    EXPECT_EQ(allowed[0] == 1 && allowed[1] == 1, pin);
    if (pin) {
      EXPECT_NE(at[0], at[1]);
    }
  }
  EXPECT_FALSE(can_pin(CPU_SETSIZE + 1));
}

TEST(MeasureAllReduce, LetsAutoPickFromTheTableOfTheExecution) {
  std::atomic<int> calls{0};
  const RingAndMore::More count = [&calls](int, View) { ++calls; };
  AllReduceBenchOptions options = quick_options(2);
  options.execution.strategies = with(count);
  options.execution.table = {{2, 0, "ring and more"}};
  options.strategies = {"auto"};
  for (const Measurement& row : measure_all_reduce(options, [](const Measurement&) {})) {
    EXPECT_TRUE(row.right());
  }
  EXPECT_EQ(calls, 2 * 2 * (1 + 3)) << "ranks, sizes, calls";
}

TEST(MeasureAllReduce, ChoosesHowOften) {
  AllReduceBenchOptions options = quick_options(2);
  options.sizes = {4096};
  options.iterations = 0;
  const auto rows = measure_all_reduce(options, [](const Measurement&) {});
  EXPECT_GE(rows.front().iterations, kFewestIterations);
  EXPECT_LE(rows.front().iterations, kMostIterations);
}

TEST(MeasureAllReduce, KeepsTheInputOutOfPlace) {
  AllReduceBenchOptions options = quick_options(2);
  options.in_place = false;
  for (const Measurement& row : measure_all_reduce(options, [](const Measurement&) {})) {
    EXPECT_TRUE(row.right());
    EXPECT_FALSE(row.in_place);
  }
}

/// Measures with a result that is spoilt on rank `spoiled`, or on every rank: -1.
std::vector<Measurement> measure_spoiled(int spoiled, bool check) {
  AllReduceBenchOptions options = quick_options(2);
  options.check = check;
  return measure_with(options, [spoiled](int rank, View data) {
    if (spoiled < 0 || rank == spoiled) *data.f32() += 1;
  });
}

TEST(MeasureAllReduce, TakesAsLongAsTheSlowestRank) {
  for (const int slow : {0, 1}) {
    const auto rows = measure_with(quick_options(2), [slow](int rank, View) {
      if (rank == slow) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    });
    for (const Measurement& row : rows) EXPECT_GE(row.min_us, 3000) << slow;
  }
}

TEST(MeasureAllReduce, FindsAResultThatIsWrongEverywhere) {
  for (const Measurement& row : measure_spoiled(-1, true)) {
    EXPECT_EQ(row.wrong, 3 * 2);  // an element of each of three calls on two ranks
    EXPECT_FALSE(row.ranks_differ());
    EXPECT_FALSE(row.right());
  }
}

TEST(MeasureAllReduce, FindsRanksThatDifferEvenWithoutChecking) {
  for (const Measurement& row : measure_spoiled(1, true)) EXPECT_EQ(row.wrong, 3);
  for (const Measurement& row : measure_spoiled(1, false)) {
    EXPECT_EQ(row.wrong, 0);
    EXPECT_TRUE(row.ranks_differ());
    EXPECT_FALSE(row.right());
  }
}

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
    } catch (const train::FileError& error) {
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
  EXPECT_THROW(read_measurements(folder / "nothing.json"), train::FileError);
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
