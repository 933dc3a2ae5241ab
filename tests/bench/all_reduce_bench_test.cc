// The benchmark of all-reduce without its command: what it measures, and the errors that it finds.
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/stop_request.h"
#include "bench/all_reduce/measure.h"
#include "bench/all_reduce/pinning.h"
#include "comm/all_reduce/ring.h"

namespace ringlet::bench {
namespace {

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

// Other work came after the warm-up, whose calls had promised some thousand in 0.2 s.
TEST(MeasureAllReduce, HurriesWhereCallsTakeFarLongerThanTheyWereChosenFor) {
  AllReduceBenchOptions options = quick_options(2);
  options.sizes = {4096};
  options.iterations = 0;
  options.warm_up = 20;
  std::atomic<int> calls{0};
  const auto rows = measure_with(options, [&](int rank, View) {
    if (rank == 1 && ++calls > 20) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  });
  EXPECT_TRUE(rows.front().right());
  EXPECT_GE(rows.front().rounds, kFewestJudged);
  EXPECT_LT(rows.front().iterations, kMostIterations / 2);
}

/// A call of each round is not timed.
constexpr int kCallsOfRestless = 3 * kRounds;

/// Measures a ring whose first measurement has rounds of 20 and 60 ms in turns, and all later calls
/// 20 ms.
Measurement measure_restless(double budget_seconds, int& calls_of_rank_0) {
  AllReduceBenchOptions options = quick_options(2);
  options.sizes = {4096};
  options.iterations = 2 * kRounds;
  options.budget_seconds = budget_seconds;
  std::array<std::atomic<int>, 2> calls{};
  const auto rows = measure_with(options, [&](int rank, View) {
    const int call = calls[static_cast<std::size_t>(rank)]++;
    const bool slow = call < kCallsOfRestless && (call / 3) % 2 == 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(slow ? 60 : 20));
  });
  calls_of_rank_0 = calls[0];
  return rows.front();
}

TEST(MeasureAllReduce, MeasuresAgainWhatDoesNotCountAsLongAsTheBudgetLasts) {
  int calls = 0;
  const Measurement bad = measure_restless(0, calls);
  EXPECT_EQ(calls, kCallsOfRestless);
  EXPECT_FALSE(bad.counts);
  EXPECT_NE(bad.why_not.find("its rounds place the median only between "), std::string::npos)
      << bad.why_not;
  EXPECT_EQ(bad.rounds, kRounds);
  EXPECT_EQ(bad.iterations, 2 * kRounds);
  const Measurement again = measure_restless(5, calls);
  EXPECT_GE(calls, 2 * kCallsOfRestless);
  EXPECT_TRUE(again.right());
  if (!again.counts) GTEST_SKIP() << again.why_not;  // this machine is busy
  EXPECT_LT(again.high_us, 40e3);
}

TEST(MeasureAllReduce, EndsBetweenTwoRoundsWhereItIsAskedToStop) {
  AllReduceBenchOptions options = quick_options(2);
  options.iterations = 1000;
  std::atomic<int> asked{0};
  options.stop_requested = [&] { return ++asked > 2; };
  int rows = 0;
  EXPECT_THROW(measure_all_reduce(options, [&](const Measurement&) { ++rows; }), Stopped);
  EXPECT_EQ(rows, 0);
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

}  // namespace
}  // namespace ringlet::bench
