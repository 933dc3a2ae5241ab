// LoopRest in a loop that has the same event again and again, as Gloo's has where a rank holds the
// connection.
#include "comm/transport/between/loop_rest.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace ringlet::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kOneNap(5);
constexpr std::chrono::seconds kInTime(30);  // on a busy machine

class BusyLoop {
 public:
  explicit BusyLoop(LoopRest& rest) : rest_(rest), noise_(::eventfd(1, EFD_CLOEXEC)) {
    add(noise_);
    add(rest_.descriptor());
    thread_ = std::thread([this] { run(); });
  }
  ~BusyLoop() {
    stop_ = true;
    thread_.join();
    ::close(noise_);
    ::close(epoll_);
  }
  BusyLoop(const BusyLoop&) = delete;
  BusyLoop& operator=(const BusyLoop&) = delete;

  std::int64_t turns() const { return turns_; }
  /// Whether it makes so many turns soon.
  bool turns_by(std::int64_t count) const {
    const std::int64_t end = turns_ + count;
    const Clock::time_point begin = Clock::now();
    while (turns_ < end && Clock::now() - begin < kInTime) std::this_thread::yield();
    return turns_ >= end;
  }

 private:
  void add(int descriptor) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    ASSERT_EQ(::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event), 0);
  }
  void run() {
    while (!stop_) {
      epoll_event events[2];
      const int count = ::epoll_wait(epoll_, events, 2, 10);
      ++turns_;
      for (int i = 0; i < count; ++i) {
        if (events[i].data.fd == rest_.descriptor()) rest_.rest();
      }
    }
  }

  LoopRest& rest_;
  int noise_;
  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::atomic<std::int64_t> turns_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// How many turns it makes in ten naps, and how many it may if it does nothing but nap.
void expect_naps(const BusyLoop& loop) {
  constexpr int kTurnsBeforeTheFirst = 2;
  const std::int64_t before = loop.turns();
  const Clock::time_point begin = Clock::now();
  std::this_thread::sleep_for(10 * kOneNap);
  const std::int64_t turns = loop.turns() - before;
  EXPECT_LE(turns, (Clock::now() - begin) / kOneNap + 1 + kTurnsBeforeTheFirst);
}

TEST(LoopRest, LetsTheLoopSleepUntilTheLastEnd) {
  LoopRest rest;
  const BusyLoop loop(rest);
  constexpr int kMany = 1000;
  EXPECT_TRUE(loop.turns_by(kMany));
  rest.begin();
  expect_naps(loop);
  rest.begin();
  rest.end();
  expect_naps(loop);
  rest.end();
  EXPECT_TRUE(loop.turns_by(kMany));
}

/// A rank that finds its connection broken waits for the loop to turn.
TEST(LoopRest, LetsTheLoopTurnNowAndThen) {
  LoopRest rest;
  const BusyLoop loop(rest);
  rest.begin();
  EXPECT_TRUE(loop.turns_by(5));
  rest.end();
}

TEST(LoopRest, IsForManyThreads) {
  LoopRest rest;
  const BusyLoop loop(rest);
  const auto begin_and_end = [&rest] {
    for (int i = 0; i < 2000; ++i) {
      rest.begin();
      rest.end();
    }
  };
  std::thread other(begin_and_end);
  begin_and_end();
  other.join();
  EXPECT_TRUE(loop.turns_by(1000)) << "as if somebody were inside";
}

}  // namespace
}  // namespace ringlet::comm
