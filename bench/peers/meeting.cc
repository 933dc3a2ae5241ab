#include "bench/peers/meeting.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/processors.h"
#include "bench/all_reduce/common_start.h"

namespace ringlet::bench::peers {

namespace {

constexpr std::size_t kLine = 64;  // of the cache
constexpr int kSpins = 2'000;      // some ten microseconds

/// Between two looks: spins, then lets others run.
void between_looks(int looks) {
  if (looks < kSpins) {
    relax_processor();
  } else {
    std::this_thread::yield();
  }
}

template <class Ready>
void spin_until(Ready ready) {
  for (int looks = 0; !ready(); ++looks) between_looks(looks);
}

constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

/// Zeroed memory is a valid one: atomics of lock-free integers are nothing but these.
struct Meeting::Head {
  CommonStart start;
  alignas(2 * kLine) std::atomic<std::uint32_t> turn;  // two lines: processors fetch them in pairs
  alignas(2 * kLine) double distance;
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
};

/// What a rank says of a case.
struct Meeting::RankCase {
  std::int64_t wrong;
  double shared_core;
};

std::size_t Meeting::bytes(int ranks, int iterations) {
  const auto counts = static_cast<std::size_t>(ranks);
  return sizeof(Head) + whole_lines(counts * sizeof(RankCase)) +
         counts * whole_lines(static_cast<std::size_t>(iterations) * sizeof(double));
}

Meeting::Meeting(void* memory, int rank, int ranks, int iterations)
    : memory_(static_cast<std::byte*>(memory)),
      rank_(rank),
      ranks_(ranks),
      iterations_(iterations) {}

Meeting::Head& Meeting::head() const { return *reinterpret_cast<Head*>(memory_); }

void Meeting::wait() { head().start.meet(ranks_, between_looks); }

double Meeting::core_distance() {
  if (rank_ == 0) head().turn.store(0);
  wait();
  if (rank_ < 2) {
    const double distance = hand_to_and_fro();
    if (rank_ == 0) head().distance = distance;
  }
  wait();
  return head().distance;
}

/// Rank 0 makes the turn odd, rank 1 makes it even again, until rank 0 has seen enough or waited
/// too long: two ranks on one processor say nothing about the way between two.
double Meeting::hand_to_and_fro() {
  using Clock = std::chrono::steady_clock;
  constexpr int kBatches = 51, kTrips = 20;  // a batch takes 1 us near, 6 us far
  constexpr std::uint32_t kEnd = 0xffffffff;
  constexpr std::chrono::milliseconds kPatience{5};
  std::atomic<std::uint32_t>& turn = head().turn;
  if (rank_ == 1) {
    for (std::uint32_t seen = 0; seen != kEnd;) {
      spin_until([&] { return ((seen = turn.load(std::memory_order_acquire)) & 1) != 0; });
      if (seen != kEnd) turn.store(seen + 1, std::memory_order_release);
    }
    return 0;
  }
  std::vector<double> batches;
  const Clock::time_point start = Clock::now();
  for (std::uint32_t now = 0; batches.size() < kBatches && Clock::now() - start < kPatience;) {
    const Clock::time_point begin = Clock::now();
    for (int trip = 0; trip < kTrips; ++trip, now += 2) {
      turn.store(now + 1, std::memory_order_release);
      spin_until([&] { return turn.load(std::memory_order_acquire) == now + 2; });
    }
    batches.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                      (2 * kTrips));
  }
  turn.store(kEnd, std::memory_order_release);
  std::sort(batches.begin(), batches.end());
  return batches[batches.size() / 2];
}

Meeting::RankCase& Meeting::of_case(int rank) const {
  return reinterpret_cast<RankCase*>(memory_ + sizeof(Head))[rank];
}

std::int64_t& Meeting::wrong(int rank) { return of_case(rank).wrong; }

double& Meeting::shared_core(int rank) { return of_case(rank).shared_core; }

double& Meeting::seconds(int rank, int iteration) {
  const std::size_t row = whole_lines(static_cast<std::size_t>(iterations_) * sizeof(double));
  const std::size_t begin =
      sizeof(Head) + whole_lines(static_cast<std::size_t>(ranks_) * sizeof(RankCase));
  return reinterpret_cast<double*>(memory_ + begin +
                                   static_cast<std::size_t>(rank) * row)[iteration];
}

}  // namespace ringlet::bench::peers
