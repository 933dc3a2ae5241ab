// The code that all peers share: a wrong sum is seen whatever is wrong with it, the slowest rank's
// time counts, and every rank of a case meets every other before each call.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "base/files/json_text.h"
#include "base/trace.h"
#include "bench/all_reduce/common_start.h"
#include "bench/peers/data.h"
#include "bench/peers/forked_ranks.h"
#include "bench/peers/measurement.h"
#include "bench/peers/options.h"

namespace ringlet::bench::peers {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 5000;

std::vector<float> sum_of_inputs(int call) {
  std::vector<float> sum(kCount), part(kCount);
  for (int rank = 0; rank < kRanks; ++rank) {
    write_input(part, rank, kRanks, call);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] += part[i];
  }
  return sum;
}

TEST(PeersData, TheSumIsRightAndNothingElseIs) {
  const std::vector<float> right = sum_of_inputs(7);
  EXPECT_EQ(count_wrong(right, kRanks, 7), 0);

  std::vector<float> one_off = right;
  one_off[4999] += 1;
  EXPECT_EQ(count_wrong(one_off, kRanks, 7), 1);

  constexpr std::int64_t kMost = 9 * kCount / 10;  // some elements agree by chance
  EXPECT_GT(count_wrong(right, kRanks, 8), kMost) << "left from the call before";
  std::vector<float> input(kCount);
  write_input(input, 0, kRanks, 7);
  EXPECT_GT(count_wrong(input, kRanks, 7), kMost) << "never summed";
  std::vector<float> twice = right;
  for (std::size_t i = 0; i < kCount; ++i) twice[i] += input[i];
  EXPECT_GT(count_wrong(twice, kRanks, 7), kMost) << "rank 0 counted twice";
}

TEST(PeersData, LostBitsAreSeen) {
  std::vector<float> narrow = sum_of_inputs(7);
  for (float& x : narrow) x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xFFFF0000U);
  EXPECT_GT(count_wrong(narrow, kRanks, 7), static_cast<std::int64_t>(9 * kCount / 10));
}

TEST(PeersData, AChunkAtTheWrongOffsetIsSeen) {
  const std::vector<float> right = sum_of_inputs(0);
  for (std::size_t shift = 1; shift < kCount; shift *= 2) {
    std::vector<float> shifted = right;
    std::rotate(shifted.begin(), shifted.begin() + static_cast<std::ptrdiff_t>(shift),
                shifted.end());
    EXPECT_GT(count_wrong(shifted, kRanks, 0), static_cast<std::int64_t>(kCount) / 2) << shift;
  }
}

TEST(PeersData, KnowsASumAndAnInputFromAnyElementOn) {
  const std::vector<float> sum = sum_of_inputs(7);
  const std::span<const float> all = sum;
  EXPECT_EQ(count_wrong(all.subspan(1000), kRanks, 7, 1000), 0);
  EXPECT_GT(count_wrong(all.subspan(1000), kRanks, 7), 3500);
  std::vector<float> input(kCount);
  write_input(input, 1, kRanks, 7);
  EXPECT_EQ(count_wrong_of(std::span<const float>(input).subspan(30), 1, kRanks, 7, 30), 0);
  EXPECT_GT(count_wrong_of(input, 1, kRanks, 7, 30), 4500);
  EXPECT_GT(count_wrong_of(input, 0, kRanks, 7, 0), 4500) << "another rank's";
}

TEST(PeersTimes, AreMedianLeastAndNinetyNinthPercentile) {
  std::vector<double> seconds(200);
  std::iota(seconds.rbegin(), seconds.rend(), 1);  // 200 ... 1
  Measurement row;
  set_times(row, seconds);
  EXPECT_DOUBLE_EQ(row.median_us, 100.5e6);
  EXPECT_DOUBLE_EQ(row.min_us, 1e6);
  EXPECT_DOUBLE_EQ(row.p99_us, 199e6);
  set_times(row, {4});
  EXPECT_DOUBLE_EQ(row.median_us, 4e6);
  EXPECT_DOUBLE_EQ(row.p99_us, 4e6);
}

/// Runs `body` with a meeting on each of kRanks threads.
template <class Body>
void on_ranks(int iterations, Body body) {
  const ForkedMemory memory(Meeting::bytes(kRanks, iterations));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Meeting meeting(memory.data(), rank, kRanks, iterations);
      body(meeting);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PeersMeeting, NobodyLeavesBeforeAllHaveCome) {
  constexpr int kRounds = 200;
  std::atomic<int> arrived{0}, early{0};
  on_ranks(1, [&](Meeting& meeting) {
    for (int round = 1; round <= kRounds; ++round) {
      ++arrived;
      meeting.wait();
      if (arrived.load() < round * kRanks) ++early;
      meeting.wait();
    }
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(arrived, kRounds * kRanks);
}

TEST(PeersMeeting, AllLeaveAtATimeThatTheLastToComeSays) {
  constexpr int kRounds = 50;
  std::atomic<std::int64_t> last_came{0};
  std::atomic<int> early{0};
  on_ranks(1, [&](Meeting& meeting) {
    for (int round = 0; round < kRounds; ++round) {
      if (meeting.rank() == round % kRanks) {
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        last_came = now_ns();
      }
      meeting.wait();
      const std::int64_t left = now_ns();
      if (left < last_came.load() + CommonStart::kNoticeNs) ++early;
      meeting.wait();
    }
  });
  EXPECT_EQ(early, 0);
}

TEST(PeersMeeting, MeasuresHowFarItsCoresAre) {
  std::array<double, kRanks> distances{};
  on_ranks(1, [&](Meeting& meeting) {
    for (int again = 0; again < 3; ++again) {
      distances[static_cast<std::size_t>(meeting.rank())] = meeting.core_distance();
    }
  });
  EXPECT_GT(distances[0], 1);  // ns: no line of the cache travels faster
  EXPECT_EQ(distances[1], distances[0]);
  EXPECT_EQ(distances[2], distances[0]);
}

/// Rank 0's measurement where each rank's all-reduce is `all_reduce(rank, data, call)`.
template <class AllReduce>
Measurement measure_threads(const Calls& calls, std::size_t count, AllReduce all_reduce) {
  Measurement measurement;
  on_ranks(most_timed(calls), [&](Meeting& meeting) {
    std::vector<float> data(count);
    int call = -calls.warm_up;
    const Measurement mine =
        measure(meeting, data, calls, [&] { all_reduce(meeting.rank(), std::span(data), call++); });
    if (meeting.rank() == 0) measurement = mine;
  });
  return measurement;
}

void sum_exactly(std::span<float> data, int call) {
  const std::vector<float> sum = sum_of_inputs(call);
  std::copy_n(sum.begin(), data.size(), data.begin());
}

TEST(PeersMeasurement, CountsWrongElementsOfEveryRank) {
  const Calls calls{.timed = 4, .warm_up = 1};
  const auto right = [](int, std::span<float> data, int call) { sum_exactly(data, call); };
  EXPECT_EQ(measure_threads(calls, kCount, right).wrong, 0);
  const auto once = [](int rank, std::span<float> data, int call) {
    sum_exactly(data, call);
    if (rank == 2 && call == 2) data[17] += 1;
  };
  EXPECT_EQ(measure_threads(calls, kCount, once).wrong, 1);
}

TEST(PeersMeasurement, TakesTheSlowestRanksTime) {
  const Calls calls{.timed = 3, .warm_up = 1};
  const auto measurement = measure_threads(calls, 16, [](int rank, std::span<float>, int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(rank == 1 ? 20 : 0));
  });
  EXPECT_GE(measurement.min_us, 20'000);
}

TEST(PeersMeasurement, ChoosesHowOftenByTheSlowestRank) {
  const auto measurement = measure_threads({.warm_up = 1}, 16, [](int rank, std::span<float>, int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(rank == 1 ? 10 : 0));
  });
  EXPECT_GE(measurement.iterations, 5);
  EXPECT_LE(measurement.iterations, 20);
}

TEST(PeersMeasurement, IsOneObjectWithBandwidths) {
  Measurement row;
  row.engine = "gloo";
  row.ranks_as = "processes";
  row.transport = "tcp";
  row.strategy = "ring";
  row.ranks = 4;
  row.bytes = 4'000'000;
  row.count = 1'000'000;
  row.wrong = 3;
  row.distance_before = 25;
  row.distance_after = 150.25;
  set_times(row, {1e-3});
  const std::string line = json_line(row);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  nlohmann::json expected = to_json(row);
  expected["cores_ns"] = {25.0, 150.25};
  EXPECT_EQ(parse_json(line), expected);
  EXPECT_EQ(expected.at("algbw_gbs"), 4.0);
  EXPECT_EQ(expected.at("busbw_gbs"), 6.0);
}

TEST(PeersSizes, GoFromBeginToEndOrAreListed) {
  EXPECT_EQ(sizes_of({.begin = 4, .end = 70, .factor = 4}), (std::vector<std::int64_t>{4, 16, 64}));
  EXPECT_EQ(sizes_of({.sizes = {8, 4}}), (std::vector<std::int64_t>{8, 4}));
  EXPECT_THROW(sizes_of({.sizes = {6}}), std::invalid_argument);
  EXPECT_THROW(sizes_of({.begin = 0}), std::invalid_argument);
  EXPECT_THROW(sizes_of({.begin = 8, .end = 4}), std::invalid_argument);
}

TEST(PeersRanks, OneThatFailsEndsAllAndSaysWhy) {
  try {
    run_forked(kRanks, [](int rank) {
      if (rank == 1) throw std::runtime_error("the net is torn");
      std::this_thread::sleep_for(std::chrono::minutes(5));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "rank 1: the net is torn");
  }
}

}  // namespace
}  // namespace ringlet::bench::peers
