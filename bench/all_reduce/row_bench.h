// RowBench: what one rank does for a row of the benchmark, round by round (judgement.h).
//
// A round has a communicator of its own, as if the program began anew: where its memory comes to
// lie is worth some per cent, so it belongs to what differs between rounds. The round's first calls
// are not timed: strategies that share memory take turns with two pieces of it, and see one of them
// for the first time in each. Before the first round there are the warm-up's calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/core_pace.h"
#include "base/interference.h"
#include "bench/all_reduce/judgement.h"
#include "bench/all_reduce/measure.h"
#include "bench/all_reduce/rank_barrier.h"
#include "bench/all_reduce/rank_buffers.h"
#include "comm/communicator.h"
#include "train/telemetry/trace_writer.h"

namespace ringlet::bench {

/// What a rank tells the others of its calls, as bytes: so it holds numbers only.
struct RankResult {
  struct Head {
    std::int64_t wrong = 0;
    std::uint64_t hash = 0;
    Interference interference{};  ///< over all rounds
    std::int64_t moves = 0;       ///< RowSigns::moves, clock
    double clock = 1;
    CoreLooks core{};
    double seconds = 0;  ///< that the rounds took, with all that belongs to them
    bool in_turns = false;
  };
  Head head{};
  std::vector<double> seconds;  ///< of each timed call

  std::string pack() const;
  static RankResult unpack(const std::string& text);
};

/// What all rows of a size share on a rank.
struct SizeBench {
  const AllReduceBenchOptions& options;
  Device& device;
  comm::Communicator& world;   ///< of all ranks, which meet and compare there
  comm::Transport& transport;  ///< of those that call together
  RankBarrier& barrier;
  RankBuffers& buffers;
  int processors;  ///< that the ranks of this machine have: one that is pinned sees its own alone
};

class RowBench {
 public:
  RowBench(const SizeBench& size, std::string strategy);

  const std::string& strategy() const { return strategy_; }
  /// Forgets what was measured.
  void begin();
  /// Measures the next round, the same one on all ranks. False where there is none left.
  bool run_round();
  /// Whether calls, of a number that nobody gave, take far longer than they were chosen for: other
  /// work has the processors. Only on this rank.
  bool is_late() const;
  /// From now on a round has one call. On all ranks.
  void hurry();
  /// Of all ranks, the same on each: collective. After the last round.
  std::vector<RankResult> results();
  /// How many calls each of the rounds has.
  const std::vector<int>& calls_of_rounds() const { return calls_of_rounds_; }
  /// The seconds of a row's calls by its rounds.
  std::vector<std::vector<double>> by_rounds(const std::vector<double>& seconds) const;

  /// Makes a few calls more, whose spans go to the trace.
  void run_traced(train::TraceWriter& trace);

 private:
  class Calls;
  void warm_up(Calls& calls);
  int agree_on(double seconds);
  /// Of a round: as seen right before and right after its calls.
  void note(const CorePace& before, const CorePace& after);

  SizeBench size_;
  std::string strategy_;
  std::int64_t iteration_ = 0;
  std::vector<int> calls_of_rounds_;  // none before the warm-up
  std::size_t round_ = 0;             // the next
  double quickest_product_ = 0, slowest_product_ = 0;
  RankResult mine_;
};

}  // namespace ringlet::bench
