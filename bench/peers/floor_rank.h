// The barest all-reduce over memory that all ranks reach: one rank's side, and the memory. Ranks
// are numbers with a digit for each phase; the ranks of a phase's group differ in that digit only,
// and there are as many as the phase's radix. One phase of all ranks is the usual one-shot and
// two-shot; phases of two ranks are recursive doubling, and recursive halving and doubling.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/peers/floor_loops.h"
#include "bench/peers/forked_ranks.h"

namespace ringlet::bench::peers {

inline constexpr const char *kTwoShot = "two-shot", *kFourStreams = "two-shot-four-streams",
                            *kOneShot = "one-shot";

/// Factors of `ranks`, each the largest up to `radix` that divides what is left; where none does,
/// the smallest above it. Both from 2 on.
std::vector<int> radices_of(int ranks, int radix);

/// Zeroed floats that begin a large page; not touched before use.
class LargePages {
 public:
  /// `shared`: with processes that are forked afterwards; those are small pages mostly, since a
  /// system seldom gives large ones to share. Throws std::bad_alloc.
  LargePages(std::size_t count, bool shared);
  ~LargePages();
  LargePages(LargePages&&) noexcept;
  LargePages& operator=(LargePages&&) = delete;

  std::span<float> span() const { return {floats_, count_}; }

 private:
  void* mapped_;
  std::size_t mapped_bytes_;
  float* floats_;
  std::size_t count_;
};

/// The memory of a case, which all ranks reach.
class FloorMemory {
 public:
  FloorMemory(int ranks, std::size_t phases, std::size_t count, bool shared);

  std::span<float> data(int rank) const { return data_[static_cast<std::size_t>(rank)].span(); }
  /// Where a rank copies its data in a phase; two, used in turn.
  float* window(int rank, std::size_t phase, int turn) const;
  /// How often a rank has come to a point where others may wait for it.
  std::atomic<std::uint64_t>& flag(int rank) const;

 private:
  std::size_t phases_;
  std::vector<LargePages> data_, windows_;
  ForkedMemory flags_;
};

/// One rank's side. The memory outlives it.
class FloorRank {
 public:
  FloorRank(const FloorMemory& memory, int rank, std::span<const int> radices);

  /// Sums its data by one of the strategies above; four streams only matter in groups of two.
  std::function<void()> all_reduce(const std::string& strategy);

 private:
  struct Part {
    std::size_t begin, count;
  };
  struct Phase {
    std::vector<int> group;  ///< by digit
    std::size_t digit;
  };
  static Part part_of(Part whole, std::size_t parts, std::size_t number);

  void one_shot();
  void two_shot(bool by_quarters);
  void add_from_group(const Phase& phase, Part part);
  void sum_into_group(const Phase& phase, Part part, bool by_quarters);
  void give_to_group(const Phase& phase, Part part);
  void meet(const Phase& phase);

  const FloorMemory& memory_;
  FloorLoops loops_;
  int rank_;
  std::vector<Phase> phases_;
  int looks_;
  int turn_ = 0;
  std::uint64_t met_ = 0;
};

}  // namespace ringlet::bench::peers
