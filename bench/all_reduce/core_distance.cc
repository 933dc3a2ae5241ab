#include "bench/all_reduce/core_distance.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>

#include "base/trace.h"

namespace ringlet::bench {

namespace {

constexpr int kRoundTrips = 50;    // of a batch: a few microseconds
constexpr int kBatches = 200;      // at least
constexpr double kLongest = 1000;  // ns: what takes longer is the system's scheduler, and no cache
constexpr std::int64_t kPatience = 500'000'000;  // ns, until a batch runs undisturbed

struct alignas(128) Line {
  std::atomic<std::int64_t> turn{0};
};
constexpr std::int64_t kEnd = -1;

/// Waits until the turn differs from `from`. Yields the processor only when that takes long.
std::int64_t await_change(const Line& line, std::int64_t from) {
  constexpr std::int64_t kLooks = 2000;
  std::int64_t now = from;
  for (std::int64_t looks = 1; (now = line.turn.load(std::memory_order_acquire)) == from; ++looks) {
    if (looks % kLooks == 0) std::this_thread::yield();
  }
  return now;
}

/// Pins the calling thread to its current processor or, if that is `taken`, to another one that it
/// may use. Returns which; -1 if there is none.
int settle(int taken) {
  cpu_set_t allowed, chosen;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  int processor = sched_getcpu();
  for (int other = 0; processor == taken && other < CPU_SETSIZE; ++other) {
    if (other != taken && CPU_ISSET(other, &allowed)) processor = other;
  }
  CPU_ZERO(&chosen);
  CPU_SET(processor, &chosen);
  if (processor == taken || sched_setaffinity(0, sizeof chosen, &chosen) != 0) return -1;
  return processor;
}

/// Answers each odd turn with the next even one.
void answer(Line& line) {
  for (std::int64_t turn = 0; (turn = await_change(line, turn)) != kEnd;) {
    line.turn.store(++turn, std::memory_order_release);
  }
}

/// Nanoseconds of a trip in the quickest batch.
double quickest_trip(Line& line) {
  double quickest = INFINITY;
  std::int64_t turn = 0;
  const std::int64_t start = now_ns();
  for (int batch = 0; batch < kBatches || quickest > kLongest; ++batch) {
    const std::int64_t begin = now_ns();
    if (begin - start > kPatience) break;
    for (int i = 0; i < kRoundTrips; ++i) {
      line.turn.store(++turn, std::memory_order_release);
      turn = await_change(line, turn);
    }
    quickest = std::min(quickest, static_cast<double>(now_ns() - begin) / (2.0 * kRoundTrips));
  }
  return quickest;
}

}  // namespace

std::optional<CoreDistance> measure_core_distance() {
  constexpr int kNotYet = -2;
  Line line;
  std::atomic<int> first{kNotYet}, second{kNotYet};  // their processors; -1: there is none
  double quickest = INFINITY;
  std::thread one([&] {
    first = settle(-1);
    first.notify_one();
    second.wait(kNotYet);
    if (second < 0) return;
    quickest = quickest_trip(line);
    line.turn.store(kEnd, std::memory_order_release);
  });
  std::thread two([&] {
    first.wait(kNotYet);
    second = first < 0 ? -1 : settle(first);
    second.notify_one();
    if (second >= 0) answer(line);
  });
  one.join();
  two.join();
  if (quickest > kLongest) return {};
  return CoreDistance{quickest};
}

}  // namespace ringlet::bench
