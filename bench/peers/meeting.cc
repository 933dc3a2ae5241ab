#include "bench/peers/meeting.h"

#include <thread>

#include "comm/doorbell.h"

namespace ringlet::peers {

namespace {

constexpr std::size_t kLine = 64;  // of the cache
constexpr int kSpins = 20'000;     // less than a millisecond

constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

/// The barrier. Zeroed memory is a valid one: atomics of lock-free integers are nothing but these.
struct Meeting::Head {
  alignas(kLine) std::atomic<std::uint32_t> arrived;
  alignas(kLine) std::atomic<std::uint32_t> round;
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
};

std::size_t Meeting::bytes(int ranks, int iterations) {
  const auto counts = static_cast<std::size_t>(ranks);
  return sizeof(Head) + whole_lines(counts * sizeof(std::int64_t)) +
         counts * whole_lines(static_cast<std::size_t>(iterations) * sizeof(double));
}

Meeting::Meeting(void* memory, int rank, int ranks, int iterations)
    : memory_(static_cast<std::byte*>(memory)),
      rank_(rank),
      ranks_(ranks),
      iterations_(iterations) {}

Meeting::Head& Meeting::head() const { return *reinterpret_cast<Head*>(memory_); }

void Meeting::wait() {
  Head& barrier = head();
  const std::uint32_t round = barrier.round.load(std::memory_order_acquire);
  if (barrier.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      static_cast<std::uint32_t>(ranks_)) {
    barrier.arrived.store(0, std::memory_order_relaxed);
    barrier.round.store(round + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; barrier.round.load(std::memory_order_acquire) == round; ++spins) {
    if (spins < kSpins) {
      comm::relax_processor();
    } else {
      std::this_thread::yield();
    }
  }
}

std::int64_t& Meeting::wrong(int rank) {
  return reinterpret_cast<std::int64_t*>(memory_ + sizeof(Head))[rank];
}

double& Meeting::seconds(int rank, int iteration) {
  const std::size_t row = whole_lines(static_cast<std::size_t>(iterations_) * sizeof(double));
  const std::size_t begin =
      sizeof(Head) + whole_lines(static_cast<std::size_t>(ranks_) * sizeof(std::int64_t));
  return reinterpret_cast<double*>(memory_ + begin +
                                   static_cast<std::size_t>(rank) * row)[iteration];
}

}  // namespace ringlet::peers
