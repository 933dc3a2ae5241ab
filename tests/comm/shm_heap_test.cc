// Memory that processes reach in place: how it is found and kept, and what becomes of a two-shot
// all-reduce there that is cut short. (What it computes: process_operations_test.cc.)
#include "comm/transport/shm/shm_heap.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
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
  const ShmRange whole = heap.find(first.data(), 10'000);
  EXPECT_TRUE(whole.in_reach());
  EXPECT_EQ(whole.begin, 0);
  EXPECT_EQ(whole.bytes, 10'000);
  const ShmRange part = heap.find(at(first, 5'000), 5'000);
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

TEST(SealedMemory, KeepsItsSizeAndIsNoProgram) {
  const SealedMemory memory = SealedMemory::make("test", 10'000);
  struct stat status {};
  ASSERT_EQ(::fstat(memory.descriptor(), &status), 0);
  EXPECT_EQ(status.st_size, 12'288) << "whole pages";
  EXPECT_EQ(::ftruncate(memory.descriptor(), 4'096), -1);
  EXPECT_EQ(::ftruncate(memory.descriptor(), 16'384), -1);
  EXPECT_EQ(::fcntl(memory.descriptor(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  constexpr int kExecSeal = 0x20;  // F_SEAL_EXEC, of Linux 6.3
  if ((::fcntl(memory.descriptor(), F_GET_SEALS) & kExecSeal) == 0) {
    GTEST_SKIP() << "this kernel does not know MFD_NOEXEC_SEAL";
  }
  EXPECT_EQ(status.st_mode & 0111U, 0U);
  EXPECT_EQ(::fchmod(memory.descriptor(), 0700), -1);
}

/// One process with two ranks, of which rank 1 shows memory and the other reaches it.
class ShmReachTest : public testing::Test {
 protected:
  std::byte* reach(const ShmRange& range) {
    shown_.hand_over(range);
    return static_cast<std::byte*>(reach_.at(1, range));
  }
  /// Why the reader refuses 100 bytes that come with `descriptor`.
  std::string refusal_of(int descriptor) {
    mesh_.hand_over(0, {.rank = 1, .memory = 7, .bytes = 100}, descriptor);
    try {
      reach_.at(1, {.memory = 7, .begin = 0, .bytes = 100});
    } catch (const CommError& error) {
      return error.what();
    }
    return "";
  }
  static std::string refused(const std::string& why) {
    return "the memory of rank 1 cannot be reached: " + why +
           "; use --transport gloo, or --replicas in one process";
  }

  Rendezvous rendezvous_{{0, 1, new_run(), "test"}, {}};
  MemoryMesh mesh_{rendezvous_, {0}, 1, 20};
  ShmHeap heap_;
  ShmShown shown_{heap_, mesh_, 1, 2};
  ShmReach reach_{mesh_, 2};
};

TEST_F(ShmReachTest, IsTheSameMemory) {
  const Buffer buffer(heap_, 8'000);
  std::byte* there = reach(heap_.find(at(buffer, 4'096), 8));
  EXPECT_NE(there, at(buffer, 4'096));
  *at(buffer, 4'096) = std::byte{7};
  EXPECT_EQ(*there, std::byte{7});
  there[1] = std::byte{8};
  EXPECT_EQ(*at(buffer, 4'097), std::byte{8});
  EXPECT_EQ(reach(heap_.find(at(buffer, 4'100), 8)), there + 4) << "mapped once";
}

TEST_F(ShmReachTest, KeepsWhatItsOwnerGaveBack) {
  std::byte* there = nullptr;
  {
    const Buffer buffer(heap_, 100);
    *at(buffer, 50) = std::byte{9};
    there = reach(heap_.find(buffer.data(), 100));
  }
  EXPECT_EQ(there[50], std::byte{9});
  there[50] = std::byte{1};  // as a rank may that has not heard of an error yet
}

/// Memories that this process maps.
std::ptrdiff_t mapped_memories() {
  std::ifstream maps("/proc/self/maps");
  const std::string all{std::istreambuf_iterator<char>(maps), {}};
  std::ptrdiff_t count = 0;
  for (std::size_t at = 0; (at = all.find("memfd:ringlet heap", at)) != std::string::npos; ++at) {
    ++count;
  }
  return count;
}

TEST_F(ShmReachTest, LetsGoOfTheOldestAndGetsItAgain) {
  constexpr int kMany = 5 * static_cast<int>(ShmShown::kKept);
  std::vector<Buffer> buffers;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kMany; ++i) {
      if (round == 0) buffers.emplace_back(heap_, 4'096);
      const Buffer& buffer = buffers[static_cast<std::size_t>(i)];
      *at(buffer, 0) = static_cast<std::byte>(i + round);
      EXPECT_EQ(*reach(heap_.find(buffer.data(), 4'096)), static_cast<std::byte>(i + round));
    }
  }
  EXPECT_EQ(mapped_memories(), kMany + static_cast<std::ptrdiff_t>(ShmShown::kKept));
}

TEST_F(ShmReachTest, SaysThatNothingWasHandedOver) {
  const Buffer buffer(heap_, 100);
  try {
    reach_.at(1, heap_.find(buffer.data(), 100));
    FAIL();
  } catch (const CommError& error) {
    EXPECT_EQ(error.what(), refused("its process has not handed it over"));
  }
}

TEST_F(ShmReachTest, RefusesMemoryThatCanBeCutShort) {
  const Descriptor open_ended(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open_ended.get(), 4'096), 0);
  EXPECT_EQ(refusal_of(open_ended.get()), refused("its size is not sealed"));
  ASSERT_EQ(::fcntl(open_ended.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_EQ(refusal_of(open_ended.get()), refused("its size is not sealed")) << "for good";
  const Descriptor no_memory(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(refusal_of(no_memory.get()), refused("its size is not sealed"));
}

TEST_F(ShmReachTest, RefusesMemoryOfAnotherSize) {
  const SealedMemory longer = SealedMemory::make("test", 5'000);
  EXPECT_EQ(refusal_of(longer.descriptor()), refused("it has 8192 bytes and not 4096"));
  const SealedMemory fitting = SealedMemory::make("test", 100);
  EXPECT_EQ(refusal_of(fitting.descriptor()), "");
  EXPECT_THROW(reach_.at(1, {.memory = 7, .begin = 50, .bytes = 51}), CommError);
}

TEST_F(ShmReachTest, SaysThatThereAreTooManyOpenFiles) {
  EXPECT_EQ(refusal_of(-1), refused("this process may open no more files (ulimit -n)"));
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
