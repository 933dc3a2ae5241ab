// Every strategy with every operation on every type, over odd worlds and lengths, in badly aligned
// memory: exact, the same bytes on every rank, and nothing beside the data touched.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "comm/communicator.h"
#include "tests/comm/exact_operations.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

/// The longest short data, as f32; of f16, twice as many.
constexpr std::size_t kShortFloats = PeerAccess::kLongestShared / sizeof(float);

class Operations : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string strategy() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }
};

TEST_P(Operations, AreExactOnEveryRankForEveryType) {
  LocalGroup group(size());
  run_ranks(size(), [&](int rank) {
    const auto device = in_place_device();
    Stream& stream = device->communication();
    group.transport(rank).set_timeout(20);
    const auto reduce = make_all_reduce(strategy(), group.transport(rank));
    Delay delay(rank);
    const auto p = static_cast<std::size_t>(size());
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, p - 1, p, p + 1, kShortFloats, 2 * kShortFloats + 1}) {
      for (const ReduceOp op : kReduceOps) {
        delay.now_and_then();
        expect_exact<float>(*reduce, stream, *device, rank, size(), op, count);
        expect_exact<Half>(*reduce, stream, *device, rank, size(), op, count);
        expect_exact<BFloat16>(*reduce, stream, *device, rank, size(), op, count);
        expect_exact<std::int32_t>(*reduce, stream, *device, rank, size(), op, count);
      }
    }
    expect_exact<float>(*reduce, stream, *device, rank, size(), ReduceOp::sum, 100003);
  });
}

INSTANTIATE_TEST_SUITE_P(Of, Operations,
                         testing::Combine(testing::ValuesIn(strategies_of_threads()),
                                          testing::Values(1, 2, 3, 4, 5, 7, 8, 16)),
                         [](const auto& test) {
                           return identifier(std::get<0>(test.param)) + "_" +
                                  std::to_string(std::get<1>(test.param));
                         });

/// In each round every rank has a block of 128 Ki elements.
TEST(TwoShot, TakesLongDataInRounds) {
  constexpr std::size_t kBlock = 128 << 10;
  for (const int size : {2, 3, 5}) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      Stream& stream = device->communication();
      Transport& transport = group.transport(rank);
      const auto reduce = make_all_reduce("two-shot", transport);
      const std::size_t round = static_cast<std::size_t>(size) * kBlock;
      for (const std::size_t count : {round - 1, round, round + 1, 3 * round + 50'021}) {
        const std::int64_t before = transport.bytes_sent();
        expect_exact<float>(*reduce, stream, *device, rank, size, ReduceOp::sum, count);
        expect_exact<Half>(*reduce, stream, *device, rank, size, ReduceOp::mean, count);
        const auto elements = reduce->elements_sent(static_cast<std::int64_t>(count));
        EXPECT_EQ(transport.bytes_sent() - before,
                  (size_of(DType::f32) + size_of(DType::f16)) * *elements);
      }
    });
  }
}

/// Reduce, reduce-scatter, all-to-all: what each rank gets of whole numbers.
TEST(Collectives, GiveEachRankItsPart) {
  constexpr std::int64_t kEach = 37;
  for (const int size : {1, 2, 3, 5, 8}) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = open_device({});
      Stream& stream = device->communication();
      Communicator communicator(group.transport(rank), {.timeout_seconds = 20});
      const std::int64_t count = size * kEach;
      const auto fresh = [&] {
        std::vector<float> values;
        for (std::int64_t i = 0; i < count; ++i) {
          values.push_back(static_cast<float>(exact_input(rank, static_cast<std::size_t>(i))));
        }
        return values;
      };
      const auto expect_range = [&](const std::vector<float>& values, ReduceOp op,
                                    std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto at = static_cast<std::size_t>(i);
          ASSERT_EQ(static_cast<double>(values[at]), exact_result(op, size, at)) << i;
        }
      };
      for (const ReduceOp op : kReduceOps) {
        std::vector<float> reduced = fresh(), scattered = fresh();
        communicator.reduce(stream, size - 1, view_of(reduced), "to the last", op);
        communicator.reduce_scatter(stream, view_of(scattered), "parts", op);
        stream.synchronize();
        if (rank == size - 1) expect_range(reduced, op, 0, count);
        expect_range(scattered, op, rank * kEach, (rank + 1) * kEach);
      }
      std::vector<float> sent = fresh(), received(sent.size());
      communicator.all_to_all(stream, view_of(sent), view_of(received), "transposed");
      stream.synchronize();
      for (int from = 0; from < size; ++from) {
        for (std::int64_t i = 0; i < kEach; ++i) {
          const auto theirs = static_cast<std::size_t>(rank * kEach + i);
          ASSERT_EQ(static_cast<double>(received[static_cast<std::size_t>(from * kEach + i)]),
                    exact_input(from, theirs));
        }
      }
    });
  }
}

TEST(Collectives, OfSeveralCommunicatorsRunSideBySide) {
  constexpr int kRanks = 3, kSets = 3;
  std::vector<std::unique_ptr<LocalGroup>> groups;
  for (int set = 0; set < kSets; ++set) groups.push_back(std::make_unique<LocalGroup>(kRanks));
  const std::vector<std::string> strategies = strategies_of_threads();
  run_ranks(kRanks * kSets, [&](int thread) {
    const int rank = thread % kRanks, set = thread / kRanks;
    const auto device = in_place_device();
    Delay delay(thread);
    for (const std::string& strategy : strategies) {
      Communicator communicator(groups[static_cast<std::size_t>(set)]->transport(rank),
                                {.strategy = strategy, .timeout_seconds = 20});
      for (int round = 0; round < 10; ++round) {
        delay.now_and_then();
        std::vector<float> data(1000, static_cast<float>(rank + set));
        communicator.all_reduce(device->communication(), view_of(data), "numbers");
        const auto expected = static_cast<float>(kRanks * set + 3);  // ranks 0, 1 and 2
        EXPECT_EQ(data, std::vector<float>(1000, expected)) << strategy;
      }
    }
  });
}

TEST(Collectives, TakeRandomWorldsLengthsAndOperationsInAnyOrder) {
  std::mt19937 random(20);
  const std::vector<std::string> strategies = strategies_of_threads();
  for (int world = 0; world < 12; ++world) {
    const int size = 1 + static_cast<int>(random() % 9);
    const std::string& strategy = strategies[random() % strategies.size()];
    std::vector<std::pair<std::size_t, ReduceOp>> calls;
    for (int i = 0; i < 20; ++i) {
      // One by one: in which order a call's arguments are computed, each compiler decides.
      const unsigned longest = random() % 2 == 0 ? 40 : 9000;
      const std::size_t count = random() % longest;
      calls.emplace_back(count, kReduceOps[random() % 4]);
    }
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = open_device({});
      Communicator communicator(group.transport(rank),
                                {.strategy = strategy, .timeout_seconds = 20});
      std::vector<std::vector<float>> data;
      for (const auto& [count, op] : calls) {
        for (std::size_t i = 0; i < count; ++i) {
          if (i == 0) data.emplace_back();
          data.back().push_back(static_cast<float>(exact_input(rank, i)));
        }
        if (count == 0) data.emplace_back();
      }
      for (std::size_t k = 0; k < calls.size(); ++k) {  // all at once, one after the other
        communicator.all_reduce(device->communication(), view_of(data[k]), "one of many",
                                calls[k].second);
      }
      device->communication().synchronize();
      for (std::size_t k = 0; k < calls.size(); ++k) {
        for (std::size_t i = 0; i < data[k].size(); ++i) {
          ASSERT_EQ(static_cast<double>(data[k][i]), exact_result(calls[k].second, size, i))
              << strategy << " " << size << " ranks, call " << k;
        }
      }
    });
  }
}

}  // namespace
}  // namespace ringlet::comm
