#include "kernels/device.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/processors.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/support/files.h"

namespace ringlet {
namespace {

TEST(DeviceId, Parses) {
  EXPECT_EQ(DeviceId::parse("cpu"), (DeviceId{DeviceKind::cpu, 0}));
  EXPECT_EQ(DeviceId::parse("cuda:3"), (DeviceId{DeviceKind::cuda, 3}));
  EXPECT_EQ(DeviceId::parse("cuda:3").to_string(), "cuda:3");
  for (const char* wrong : {"", "gpu", "cpu:", "cpu:x", "cpu:-1", "cuda:1x", "cuda:99999999999"}) {
    EXPECT_THROW((void)DeviceId::parse(wrong), DeviceError) << wrong;
  }
}

TEST(OpenDevice, NamesWhatDoesNotExist) {
  try {
    (void)open_device({DeviceKind::cpu, 7});
    FAIL() << "cpu:7 was opened";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("cpu:7"), std::string::npos) << error.what();
  }
}

TEST(OpenDevice, RefusesAbsurdNumbersOfThreadsAtOnce) {
  for (const int threads : {-1, 0, 1025, 1'000'000}) {
    const auto message = ringlet::testing::message_of<DeviceError>(
        [threads] { (void)open_device({}, {.threads = threads}); });
    EXPECT_TRUE(ringlet::testing::says(
        message, {"DeviceOptions::threads is " + std::to_string(threads), "1 to 1024"}));
  }
}

TEST(CommunicationStream, RunsTasksInOrderBesideTheCaller) {
  const auto device = open_device({});
  Stream& stream = device->communication();
  std::atomic<bool> go{false};
  std::vector<int> order;
  stream.run([&go, &order] {
    while (!go) std::this_thread::yield();
    order.push_back(0);
  });
  for (int i = 1; i < 100; ++i) stream.run([&order, i] { order.push_back(i); });
  EXPECT_TRUE(order.empty());
  go = true;
  stream.synchronize();
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(CommunicationStream, WaitsForEventsOfTheOtherStream) {
  const auto device = open_device({});
  const auto ready = device->make_event();
  const auto done = device->make_event();
  int value = 0;
  for (int round = 1; round <= 100; ++round) {
    value = round;
    device->compute().record(*ready);
    device->communication().wait(*ready);
    device->communication().run([&value] { value *= 2; });
    device->communication().record(*done);
    device->compute().wait(*done);
    ASSERT_EQ(value, 2 * round);
  }
}

TEST(CommunicationStream, AnEventNobodyRecordedIsNotWaitedFor) {
  const auto device = open_device({});
  const auto event = device->make_event();
  device->communication().wait(*event);
  device->compute().wait(*event);
  EXPECT_NO_THROW(device->communication().synchronize());
}

TEST(CommunicationStream, AnErrorDropsWhatFollowsAndComesOutOnce) {
  const auto device = open_device({});
  Stream& stream = device->communication();
  const auto event = device->make_event();
  bool ran = false;
  stream.run([] { throw std::runtime_error("broken"); });
  stream.run([&ran] { ran = true; });
  stream.record(*event);
  device->compute().wait(*event);  // must not hang
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_FALSE(ran);
  stream.run([&ran] { ran = true; });
  EXPECT_NO_THROW(stream.synchronize());
  EXPECT_TRUE(ran);
}

TEST(CommunicationStream, DoesAtOnceWhatItsOwnTaskAsksFor) {
  const auto device = open_device({});
  Stream& stream = device->communication();
  const auto event = device->make_event();
  std::vector<int> order;
  stream.run([&] {
    stream.run([&order] { order.push_back(1); });
    stream.record(*event);
    stream.wait(*event);  // put behind this task, it would never be reached
    event->synchronize();
    order.push_back(2);
  });
  stream.synchronize();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(CommunicationStream, RunsInPlaceWithoutOverlap) {
  const auto device = open_device({}, {.overlap = false});
  bool ran = false;
  device->communication().run([&ran] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(ThreadPool, CoversEveryIndexOnceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const std::int64_t n : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<std::size_t>(n));
      for (int round = 0; round < 20; ++round) {
        pool.parallel_for(n, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
        });
      }
      for (const auto& hit : hits) EXPECT_EQ(hit, 20);
    }
  }
}

/// Seconds that the calling thread has had a processor.
double thread_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// Two threads that were to have a processor each, and then share one: a launcher binds them, or
/// somebody else's work leaves but one. Who waits spins for 50 us, if it does not give way.
TEST(ThreadPool, GivesWayWhereItsThreadsShareAProcessor) {
  if (usable_processors() < 2) GTEST_SKIP() << "one processor";
  std::thread([first = allowed_processors().front()] {
    ThreadPool pool(2);
    pool.parallel_for(2, [first](std::int64_t, std::int64_t, int) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<std::size_t>(first), &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    });
    constexpr int kRounds = 2000;
    const double before = thread_seconds();
    for (int round = 0; round < kRounds; ++round) {
      pool.parallel_for(2, [](std::int64_t, std::int64_t, int) {});
    }
    EXPECT_LT((thread_seconds() - before) / kRounds, 30e-6);
  }).join();
}

TEST(ThreadPool, RethrowsAndGoesOn) {
  ThreadPool pool(3);
  const auto fail = [](std::int64_t, std::int64_t end, int) {
    if (end == 9) throw std::runtime_error("broken");
  };
  EXPECT_THROW(pool.parallel_for(9, fail), std::runtime_error);
  EXPECT_NO_THROW(pool.parallel_for(8, fail));
}

TEST(Device, CountsAllocations) {
  const auto device = open_device({});
  void* address = device->allocate(1000);
  EXPECT_EQ(device->allocations(), 1);
  EXPECT_EQ(device->bytes_held(), 1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 256, 0U);
  device->deallocate(address, 1000);
  EXPECT_EQ(device->bytes_held(), 0);
}

}  // namespace
}  // namespace ringlet
