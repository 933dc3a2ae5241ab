#include "comm/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/all_reduce/parts.h"
#include "comm/core/part_transport.h"
#include "kernels/elementwise.h"
#include "kernels/memory.h"
#include "kernels/reduce.h"
#include "tests/comm/exact_operations.h"
#include "tests/comm/processes.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

constexpr int kSizes[] = {1, 2, 3, 4, 5, 7, 8};
constexpr double kTimeout = 10;  // seconds: ranks that miss each other shall be seen soon

TEST(Broadcast, GivesTheRootsDataToAllFromEachRoot) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      group.transport(rank).set_timeout(kTimeout);
      for (int root = 0; root < size; ++root) {
        for (const std::size_t count : {0, 1, 1000}) {
          std::vector<float> data(count, static_cast<float>(rank * 10 + root));
          broadcast(group.transport(rank), device->communication(), root, view_of(data));
          EXPECT_EQ(data, std::vector<float>(count, static_cast<float>(root * 11)));
        }
      }
    });
    ASSERT_FALSE(HasFailure()) << "with " << size << " ranks";
  }
}

TEST(Broadcast, SendsTheDataOnceToEachOtherRank) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      std::vector<float> data(25);
      broadcast(group.transport(rank), device->communication(), size - 1, view_of(data));
    });
    std::int64_t sent = 0;
    for (int rank = 0; rank < size; ++rank) sent += group.transport(rank).bytes_sent();
    EXPECT_EQ(sent, (size - 1) * 100);
  }
}

TEST(Broadcast, RefusesARootOutsideTheWorld) {
  LocalGroup group(1);
  const auto device = in_place_device();
  for (const int root : {-1, 1}) {
    EXPECT_THROW(
        broadcast(group.transport(0), device->communication(), root, View(nullptr, {0}, DType::u8)),
        ContractError);
  }
}

TEST(AllGather, PutsThePartsInTheOrderOfRanks) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      std::vector<float> mine{static_cast<float>(rank), 0.5F};
      std::vector<float> all(2 * static_cast<std::size_t>(size), -1.0F);
      all_gather(group.transport(rank), device->communication(), view_of(mine), view_of(all));
      for (int other = 0; other < size; ++other) {
        EXPECT_EQ(all[2 * static_cast<std::size_t>(other)], static_cast<float>(other));
        EXPECT_EQ(all[2 * static_cast<std::size_t>(other) + 1], 0.5F);
      }
    });
  }
}

/// What the long collectives leave on a rank, as bytes: of its part, and of all. The data lie in
/// memory that can be shown.
std::string of_long_collectives(Transport& of_memory, Transport& transport, DType dtype,
                                ReduceOp op) {
  constexpr std::int64_t kCount =
      20011;  // long enough for the ranks' memory, and of no equal parts
  const auto device = in_place_device();
  Stream& stream = device->communication();
  const int p = transport.size(), rank = transport.rank();
  std::mt19937 generator(static_cast<unsigned>(rank));
  std::uniform_real_distribution<float> number(-1, 1);
  Tensor numbers(of_memory.allocator(*device), {kCount}, DType::f32);
  auto* const first = static_cast<float*>(numbers.view().data());
  std::generate(first, first + kCount, [&] { return number(generator); });
  Tensor data(of_memory.allocator(*device), {kCount}, dtype);
  (dtype == DType::f32 ? copy : cast)(stream, numbers, data);
  reduce_scatter(transport, stream, data, op);
  const View part = data.view().slice(part_begin(kCount, p, rank), part_begin(kCount, p, rank + 1));
  const View mine = numbers.view().slice(0, kCount / p);
  Tensor all(of_memory.allocator(*device), {p * mine.count()}, DType::f32);
  all_gather(transport, stream, mine, all);
  const auto bytes_of = [](const View& view) {
    return std::string(static_cast<const char*>(view.data()),
                       static_cast<std::size_t>(view.bytes()));
  };
  Tensor turned(of_memory.allocator(*device), {p * mine.count()}, DType::f32);
  all_to_all(transport, stream, numbers.view().slice(0, p * mine.count()), turned);
  std::string bytes = bytes_of(part) + bytes_of(all) + bytes_of(turned);
  for (int i = 0; i < kCount; ++i) first[i] = static_cast<float>((i + rank) % 50);
  for (int root = 0; root < p; ++root) {
    const View given = data.view().slice(root, kCount);          // not from a line's begin on
    const ConstView whole = numbers.view().slice(root, kCount);  // of one sum in any order
    (dtype == DType::f32 ? copy : cast)(stream, whole, given);
    reduce(transport, stream, root, given, op);
    if (rank == root) bytes += bytes_of(given);
    (dtype == DType::f32 ? copy : cast)(stream, whole, given);
    broadcast(transport, stream, root, given);
    bytes += bytes_of(given);
  }
  return bytes;
}

TEST(LongCollectives, LeaveTheBitsOfMessagesWhetherTheyGoThroughMemoryOrNot) {
  for (const int size : {2, 3, 5}) {
    LocalGroup group(size);
    Processes processes({size, 1});
    std::vector<int> everybody(static_cast<std::size_t>(size));
    std::iota(everybody.begin(), everybody.end(), 0);
    run_ranks(size, [&](int rank) {
      for (Transport* const whole : {&group.transport(rank), &processes.transport(rank)}) {
        PartTransport messages(*whole, everybody, {});  // parts reach no memory
        ASSERT_EQ(messages.peer_access(), nullptr);
        for (const auto& [dtype, op] : {std::pair{DType::f32, ReduceOp::sum},
                                        {DType::f32, ReduceOp::mean},
                                        {DType::bf16, ReduceOp::sum},
                                        {DType::f16, ReduceOp::mean},
                                        {DType::f32, ReduceOp::max}}) {
          EXPECT_EQ(of_long_collectives(*whole, *whole, dtype, op),
                    of_long_collectives(*whole, messages, dtype, op))
              << size << " ranks, " << name_of(dtype) << " " << name_of(op);
        }
      }
    });
  }
}

/// What each collective of `count` numbers leaves on a rank, as bytes: of reduce() whole numbers,
/// which have one sum in any order.
std::string of_all_collectives(Transport& transport, std::int64_t count, DType dtype) {
  const auto device = in_place_device();
  Stream& stream = device->communication();
  const int p = transport.size(), rank = transport.rank(), root = p - 1;
  std::mt19937 generator(static_cast<unsigned>(rank));
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> numbers(static_cast<std::size_t>(p * count));
  std::generate(numbers.begin(), numbers.end(), [&] { return number(generator); });
  std::vector<float> whole(static_cast<std::size_t>(count), static_cast<float>(rank + 1));
  Tensor data(*device, {p * count}, dtype), all(*device, {p * count}, dtype);
  (dtype == DType::f32 ? copy : cast)(stream, view_of(numbers), data);
  const auto bytes_of = [](const ConstView& view) {
    return std::string(static_cast<const char*>(view.data()),
                       static_cast<std::size_t>(view.bytes()));
  };
  std::string bytes;
  broadcast(transport, stream, root, data.view().slice(0, count));
  bytes += bytes_of(data);
  all_gather(transport, stream, data.view().slice(count, 2 * count), all);
  bytes += bytes_of(all);
  all_to_all(transport, stream, data, all);
  bytes += bytes_of(all);
  reduce(transport, stream, root, view_of(whole), ReduceOp::mean);
  if (rank == root) bytes += bytes_of(view_of(whole));
  reduce_scatter(transport, stream, data, ReduceOp::sum);
  const std::int64_t begin = part_begin(p * count, p, rank);
  bytes += bytes_of(data.view().slice(begin, part_begin(p * count, p, rank + 1)));
  barrier(transport, stream);
  return bytes;
}

// Of up to 16 and 24 bytes a rank shows one line, up to 4096 more of them, and beyond nothing.
TEST(ShortCollectives, LeaveTheBitsOfMessages) {
  for (const int size : {2, 3, 5}) {
    LocalGroup group(size);
    Processes processes({size, 1});
    std::vector<int> everybody(static_cast<std::size_t>(size));
    std::iota(everybody.begin(), everybody.end(), 0);
    run_ranks(size, [&](int rank) {
      Delay delay(rank);
      for (Transport* const whole : {&group.transport(rank), &processes.transport(rank)}) {
        whole->set_timeout(kTimeout);
        PartTransport messages(*whole, everybody, {});  // parts reach no memory
        for (const std::int64_t count : {1, 2, 3, 4, 5, 6, 7, 40, 204, 205, 1024, 1025}) {
          for (const DType dtype : {DType::f32, DType::bf16}) {
            delay.now_and_then();
            EXPECT_EQ(of_all_collectives(*whole, count, dtype),
                      of_all_collectives(messages, count, dtype))
                << size << " ranks, " << count << " " << name_of(dtype);
          }
        }
      }
    });
  }
}

TEST(Collectives, CountWhatTheyMove) {
  for (const int size : {2, 3}) {
    for (const std::int64_t count :
         {10, 10'000}) {  // numbers of a part: over boards, through memory
      Processes processes({size, 1});
      std::atomic<std::int64_t> moved{0};
      run_ranks(size, [&](int rank) {
        Transport& transport = processes.transport(rank);
        const auto device = in_place_device();
        Stream& stream = device->communication();
        Tensor data(transport.allocator(*device), {size * count}, DType::f32);
        Tensor all(transport.allocator(*device), {size * count}, DType::f32);
        const std::int64_t before = transport.bytes_sent();
        broadcast(transport, stream, 0, data.view().slice(0, count));
        reduce(transport, stream, 0, data.view().slice(0, count), ReduceOp::sum);
        all_gather(transport, stream, data.view().slice(0, count), all);
        all_to_all(transport, stream, data, all);
        reduce_scatter(transport, stream, data, ReduceOp::sum);
        moved += transport.bytes_sent() - before;
      });
      const std::int64_t bytes = count * 4, once = (size - 1) * bytes;
      // Through memory each rank but the root writes its part of a reduction into another's.
      const std::int64_t roots = 128 * part_begin((bytes + 127) / 128, size, 1);
      const std::int64_t written = count == 10 ? 0 : bytes - roots;
      EXPECT_EQ(moved, once + once + written + 3 * size * once) << size << " ranks, " << count;
    }
  }
}

// Of one rank others do not reach the memory: all send messages.
TEST(LongCollectives, TakeMemoryThatOnlySomeCanShow) {
  constexpr int kRanks = 3;
  constexpr std::int64_t kCount = 10'000;
  Processes processes({kRanks, 1});
  run_ranks(kRanks, [&](int rank) {
    Transport& transport = processes.transport(rank);
    transport.set_timeout(kTimeout);
    const auto device = in_place_device();
    Stream& stream = device->communication();
    Allocator& allocator = rank == 1 ? *device : transport.allocator(*device);
    Tensor data(allocator, {kRanks * kCount}, DType::f32),
        all(allocator, {kRanks * kCount}, DType::f32);
    fill(stream, static_cast<float>(rank), data);
    all_to_all(transport, stream, data, all);
    const auto* const got = all.view().f32();
    for (int other = 0; other < kRanks; ++other)
      EXPECT_EQ(got[other * kCount], static_cast<float>(other));
    all_gather(transport, stream, data.view().slice(0, kCount), all);
    for (int other = 0; other < kRanks; ++other)
      EXPECT_EQ(got[other * kCount], static_cast<float>(other));
    reduce_scatter(transport, stream, data, ReduceOp::sum);
    EXPECT_EQ(data.view().f32()[part_begin(kRanks * kCount, kRanks, rank)], 3.0F);
    fill(stream, static_cast<float>(rank), data);
    broadcast(transport, stream, 2, data);
    const auto is_everywhere = [&data](float value) {
      const float* const begin = data.view().f32();
      return std::all_of(begin, begin + data.view().count(),
                         [value](float has) { return has == value; });
    };
    EXPECT_TRUE(is_everywhere(2));
    reduce(transport, stream, 0, data, ReduceOp::sum);
    EXPECT_TRUE(rank != 0 || is_everywhere(2 * kRanks));
  });
}

/// A rank hands over each new memory, though nobody reads it where another one cannot show its own.
TEST(LongCollectives, TakeOneNewMemoryAfterTheOtherThatOnlySomeCanShow) {
  constexpr int kRanks = 2;
  Processes processes({kRanks, 1});
  run_ranks(kRanks, [&](int rank) {
    Transport& transport = processes.transport(rank);
    transport.set_timeout(kTimeout);
    const auto device = in_place_device();
    Allocator& allocator = rank == 0 ? *device : transport.allocator(*device);
    for (int call = 0; call < 2000; ++call) {
      const Tensor data(allocator, {4096}, DType::f32);
      fill(device->communication(), static_cast<float>(call + rank), data);
      broadcast(transport, device->communication(), 0, data);
      ASSERT_EQ(data.view().f32()[4095], static_cast<float>(call));
    }
  });
}

TEST(LongCollectives, TakeViewsOfAnyShape) {
  for (const int size : {2, 3}) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      Stream& stream = device->communication();
      const Tensor data(*device, {20, 30, 40}, DType::f32);
      fill(stream, static_cast<float>(rank), data);
      broadcast(group.transport(rank), stream, 1, data);
      reduce(group.transport(rank), stream, 1, data, ReduceOp::sum);
      EXPECT_TRUE(rank != 1 || data.view().f32()[23'999] == static_cast<float>(size));
    });
  }
}

/// With each rank's transport by `transport_of(rank)`.
template <class TransportOf>
void expect_barriers_hold(int size, TransportOf transport_of) {
  std::atomic<int> came{0};
  run_ranks(size, [&](int rank) {
    const auto device = in_place_device();
    std::mt19937 generator(static_cast<unsigned>(rank));
    std::uniform_int_distribution<int> delay(0, 300);
    for (int round = 1; round <= 50; ++round) {
      std::this_thread::sleep_for(std::chrono::microseconds(delay(generator)));
      ++came;
      barrier(transport_of(rank), device->communication());
      EXPECT_GE(came.load(), round * size);
      barrier(transport_of(rank), device->communication());
    }
  });
}

TEST(Barrier, HoldsEverybodyUntilTheLastHasCome) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    expect_barriers_hold(size, [&](int rank) -> Transport& { return group.transport(rank); });
  }
  for (const int size : {2, 3}) {
    Processes processes({size, 1});
    expect_barriers_hold(size, [&](int rank) -> Transport& { return processes.transport(rank); });
  }
}

/// Sends, instead of empty messages, the ranks that it has heard of, as bits.
class GossipTransport final : public Transport {
 public:
  explicit GossipTransport(Transport& inner)
      : Transport(inner.world()), inner_(inner), heard_of_(1U << inner.rank()) {}

  unsigned heard_of() const { return heard_of_; }

  void abort(const std::string& reason) noexcept override { inner_.abort(reason); }
  std::optional<RootCause> root_cause() const override { return inner_.root_cause(); }
  FlightRecorder& recorder() override { return inner_.recorder(); }
  std::optional<RankStatus> look_at(int other) const override { return inner_.look_at(other); }

 protected:
  void do_exchange(Stream& stream, int to, ConstView, int from, View, Combine) override {
    const unsigned told = heard_of_;
    unsigned arriving = 0;
    inner_.exchange(stream, to, ConstView(&told, {sizeof told}, DType::u8), from,
                    View(&arriving, {sizeof arriving}, DType::u8));
    heard_of_ |= arriving;
  }

 private:
  Transport& inner_;
  unsigned heard_of_;
};

TEST(Barrier, LetsNobodyThroughWhoHasNotHeardOfEverybody) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      GossipTransport transport(group.transport(rank));
      barrier(transport, device->communication());
      EXPECT_EQ(transport.heard_of(), (1U << size) - 1) << "rank " << rank << " of " << size;
    });
  }
}

}  // namespace
}  // namespace ringlet::comm
