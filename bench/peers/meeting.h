// Where the ranks of one machine meet before each call and leave their times after it: memory that
// their processes share. All peers but PyTorch use it, and Ringlet's benchmark one like it, so all
// are timed from the same start (common_start.h). A barrier of their own (MPI_Barrier,
// gloo::barrier) lets ranks go some microseconds apart, which would count as time of the peer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ringlet::bench::peers {

/// One rank's view. The memory belongs to the caller and outlives it.
class Meeting {
 public:
  /// Bytes that `ranks` ranks share to note `iterations` calls.
  static std::size_t bytes(int ranks, int iterations);
  /// `memory`: so many bytes, aligned to 64 and zero before the first rank waits.
  Meeting(void* memory, int rank, int ranks, int iterations);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int iterations() const { return iterations_; }

  /// Returns when every rank has called it as often as this one. Spins, and lets others run where
  /// ranks outnumber processors. What a rank wrote before, all see afterwards.
  void wait();

  /// Nanoseconds for a line of the cache to get from rank 0's core to rank 1's: the median of some
  /// hundred round trips, halved. 15 to 60 within one cache, 85 and more between chips; a virtual
  /// machine's cores may move from the one to the other by the minute, and every time with them.
  /// Collective, and the same on every rank. At least two ranks.
  double core_distance();

  /// Seconds that a rank took for a call; it writes its own and reads all after wait().
  double& seconds(int rank, int iteration);
  /// Wrong elements that a rank saw in all of its results of a case.
  std::int64_t& wrong(int rank);
  /// CoreLooks::share() of its looks at its core (base/core_pace.h).
  double& shared_core(int rank);

 private:
  struct Head;
  struct RankCase;
  Head& head() const;
  RankCase& of_case(int rank) const;
  double hand_to_and_fro();

  std::byte* memory_;
  int rank_, ranks_, iterations_;
};

}  // namespace ringlet::bench::peers
