// Memory that processes reach in place: how it is found and kept, and what becomes of a two-shot
// all-reduce there that is cut short. (What it computes: process_operations_test.cc.)
#include "comm/transport/shm/shm_heap.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "kernels/memory.h"
#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

using std::chrono::steady_clock;

std::byte* at(const Buffer& buffer, std::int64_t begin) {
  return static_cast<std::byte*>(buffer.data()) + begin;
}

TEST(ShmHeap, KnowsWhereARangeLies) {
  ShmHeap heap;
  const Buffer first(heap, 10'000), second(heap, 100);
  const ShmPlace whole = heap.find(first.data(), 10'000);
  EXPECT_TRUE(whole.in_reach());
  EXPECT_EQ(whole.begin, 0);
  EXPECT_EQ(whole.bytes, 10'000);
  const ShmPlace part = heap.find(at(first, 5'000), 5'000);
  EXPECT_EQ(part.memory, whole.memory);
  EXPECT_EQ(part.begin, 5'000);
  EXPECT_NE(heap.find(second.data(), 100).memory, whole.memory);

  EXPECT_FALSE(heap.find(at(first, 5'000), 5'001).in_reach()) << "longer than the allocation";
  const int elsewhere = 0;
  EXPECT_FALSE(heap.find(&elsewhere, sizeof elsewhere).in_reach());
  EXPECT_FALSE(heap.find(nullptr, 0).in_reach());
}

TEST(ShmHeap, ForgetsWhatIsGivenBack) {
  ShmHeap heap;
  const std::uint64_t before = heap.version();
  const void* address = nullptr;
  {
    const Buffer buffer(heap, 100);
    address = buffer.data();
    EXPECT_NE(heap.version(), before);
  }
  EXPECT_FALSE(heap.find(address, 100).in_reach());
  const std::uint64_t after = heap.version();
  const Buffer again(heap, 100);
  EXPECT_NE(heap.version(), after);
}

TEST(ShmHeap, GivesZerosAndAnAddressForNothing) {
  ShmHeap heap;
  const Buffer buffer(heap, 5'000), nothing(heap, 0);
  EXPECT_EQ(std::count(at(buffer, 0), at(buffer, 5'000), std::byte{0}), 5'000);
  EXPECT_NE(nothing.data(), nullptr);
  EXPECT_TRUE(heap.find(nothing.data(), 0).in_reach());
}

TEST(ShmReach, IsTheSameMemory) {
  ShmHeap heap;
  ShmReach reach(2);
  const Buffer buffer(heap, 8'000);
  auto* there = static_cast<std::byte*>(reach.at(1, ::getpid(), heap.find(at(buffer, 4'096), 8)));
  EXPECT_NE(there, at(buffer, 4'096));
  *at(buffer, 4'096) = std::byte{7};
  EXPECT_EQ(*there, std::byte{7});
  there[1] = std::byte{8};
  EXPECT_EQ(*at(buffer, 4'097), std::byte{8});
  EXPECT_EQ(reach.at(1, ::getpid(), heap.find(at(buffer, 4'100), 8)), there + 4) << "mapped once";
}

TEST(ShmReach, KeepsWhatItsOwnerGaveBack) {
  ShmHeap heap;
  ShmReach reach(1);
  std::byte* there = nullptr;
  {
    const Buffer buffer(heap, 100);
    *at(buffer, 50) = std::byte{9};
    there = static_cast<std::byte*>(reach.at(0, ::getpid(), heap.find(buffer.data(), 100)));
  }
  EXPECT_EQ(there[50], std::byte{9});
  there[50] = std::byte{1};  // as a rank may that has not heard of an error yet
}

TEST(ShmReach, LetsGoOfTheOldest) {
  ShmHeap heap;
  ShmReach reach(1);
  for (int i = 0; i < 5 * static_cast<int>(ShmReach::kKept); ++i) {
    const Buffer buffer(heap, 4'096);
    *at(buffer, 0) = static_cast<std::byte>(i);
    const ShmPlace place = heap.find(buffer.data(), 4'096);
    EXPECT_EQ(*static_cast<std::byte*>(reach.at(0, ::getpid(), place)), static_cast<std::byte>(i));
  }
}

std::string message_of_reach(int pid, const ShmPlace& place) {
  ShmReach reach(4);
  try {
    reach.at(3, pid, place);
  } catch (const CommError& error) {
    return error.what();
  }
  return "";
}

TEST(ShmReach, SaysWhatIsNotThere) {
  ShmHeap heap;
  const Buffer buffer(heap, 100);
  ShmPlace place = heap.find(buffer.data(), 100);
  const std::string instead = "; use --transport gloo, or --replicas in one process";
  const std::string name =
      "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(place.descriptor);
  place.memory += 1;
  EXPECT_EQ(message_of_reach(::getpid(), place), "the memory of rank 3 cannot be reached: " + name +
                                                     " is something else by now" + instead);
  place.descriptor = 1'000'000;
  EXPECT_EQ(message_of_reach(::getpid(), place),
            "the memory of rank 3 cannot be reached: No such file or directory" + instead);
}

constexpr Split kThree{3, 1, ProcessTransport::shm};
const CommunicatorOptions kTwoShot{.strategy = "two-shot", .timeout_seconds = 20};
constexpr auto kSoon = std::chrono::seconds(10);  // a sanitizer on a busy machine is slow

TEST(TwoShotInReach, NeedsItOnAllRanksOrOnNone) {
  for (const int without : {0, 1, 2}) {
    Processes world(kThree);
    const auto messages = messages_of_ranks(3, [&](int rank) {
      const auto device = in_place_device();
      Communicator communicator(world.transport(rank), kTwoShot);
      Allocator& allocator = rank == without ? *device : communicator.allocator(*device);
      const Tensor data(allocator, {1000});
      communicator.all_reduce(device->communication(), data, "bucket 0");
    });
    const std::string all = messages[0] + messages[1] + messages[2];
    EXPECT_TRUE(contains(all, " sums memory that others reach and rank " + std::to_string(without) +
                                  " memory that they do not, in #1 all_reduce bucket 0; take it "
                                  "from Transport::allocator() on all ranks, or on none"))
        << all;
    for (const std::string& message : messages) EXPECT_NE(message, "");
  }
}

TEST(TwoShotInReach, NamesBothSidesOfDifferentLengths) {
  Processes world(kThree);
  const auto messages = messages_of_ranks(3, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(world.transport(rank), kTwoShot);
    const Tensor data(communicator.allocator(*device), {rank == 2 ? 5000 : 100});
    communicator.all_reduce(device->communication(), data, "bucket 0");
  });
  const std::string all = messages[0] + messages[1] + messages[2];
  EXPECT_TRUE(contains(all, "20000 bytes") && contains(all, "400 bytes")) << all;
  for (const std::string& message : messages) EXPECT_NE(message, "");
}

/// Sums ones in new memory each time, until something stops it.
void sum_for_ever(Device& device, Communicator& communicator) {
  while (true) {
    const Tensor data(communicator.allocator(device), {30'000});
    std::fill_n(data.f32(), 30'000, 1.0F);
    communicator.all_reduce(device.communication(), data, "bucket 0");
    const auto size = static_cast<float>(communicator.size());
    const auto right = std::count(data.f32(), data.f32() + 30'000, size);
    if (right != 30'000) throw std::runtime_error("a sum is wrong");
  }
}

TEST(TwoShotInReach, StopsWithTheRootCauseWhereverItIs) {
  for (int round = 0; round < 20; ++round) {
    Processes world(kThree);
    std::thread somebody([&world, round] {
      std::this_thread::sleep_for(std::chrono::microseconds(977 * round));
      world.transport(1).abort("at some moment");
    });
    const auto begin = steady_clock::now();
    const auto messages = messages_of_ranks(3, [&](int rank) {
      const auto device = in_place_device();
      Communicator communicator(world.transport(rank), kTwoShot);
      sum_for_ever(*device, communicator);
    });
    somebody.join();
    EXPECT_LT(steady_clock::now() - begin, kSoon);
    for (const std::string& message : messages) {
      EXPECT_EQ(message, "stopped, because rank 1 failed: at some moment") << "round " << round;
    }
  }
}

TEST(TwoShotInReach, OutlivesAProcessThatDies) {
  for (const int victim : {0, 1, 2}) {
    Processes world(kThree);
    steady_clock::time_point death;
    const auto messages = messages_of_ranks(3, [&](int rank) {
      const auto device = in_place_device();
      Communicator communicator(world.transport(rank), kTwoShot);
      if (rank != victim) sum_for_ever(*device, communicator);
      {
        const Tensor data(communicator.allocator(*device), {30'000});
        std::fill_n(data.f32(), 30'000, 1.0F);
        communicator.all_reduce(device->communication(), data, "bucket 0");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the others wait by then
      death = steady_clock::now();
      world.kill(victim);
    });
    EXPECT_LT(steady_clock::now() - death, kSoon);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      EXPECT_TRUE(contains(messages[static_cast<std::size_t>(rank)],
                           "failed: process " + std::to_string(victim) + " (pid "))
          << messages[static_cast<std::size_t>(rank)];
    }
  }
}

}  // namespace
}  // namespace ringlet::comm
