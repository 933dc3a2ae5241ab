// Measuring a collective: every strategy on the same ranks, sizes and numbers.
//
// How a call is timed (bench/peers/ times other engines in the same way):
//   1. every rank rewrites its input (test_pattern.h): buffers that were not written since the last
//      call flatter a result several times over
//   2. all ranks meet (rank_barrier.h)
//   3. a rank's time runs from there to after it has read its whole result (on a GPU: until its
//      stream has done the work; nothing is read)
//   4. the call takes as long as its slowest rank
// The warm-up's calls go the same way, untimed. Results are compared with the exact ones outside of
// the timed part: of every call up to 4 MiB, of the first and the last beyond.
//
// A row's calls are made in rounds, in turns with the other strategies of its size, and what other
// work on the machine has spoilt does not count (judgement.h). It is measured again as long as
// `budget_seconds` lasts: each size may spend its part, and leaves the next ones what it did not
// need. The better measurement stays.
//
// A collective runs in place or not, as it does without a copy (collective.h). The other way, the
// input is copied first, in the timed part (rank_buffers.h): what a caller would have to do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/stop_request.h"
#include "bench/all_reduce/collective.h"
#include "bench/all_reduce/judgement.h"
#include "bench/all_reduce/measurement.h"
#include "comm/core/group.h"
#include "kernels/reduce_op.h"
#include "kernels/tensor.h"
#include "train/recipe/options.h"
#include "train/telemetry/trace_writer.h"

namespace ringlet::bench {

inline constexpr int kMostIterations = 1000;              ///< most calls, where they are chosen
inline constexpr int kFewestIterations = kFewestJudged;   ///< fewest calls, likewise
inline constexpr double kSecondsOfASize = 0.2;            ///< time for which they are chosen
inline constexpr double kMostSecondsOfASize = 0.6;        ///< then a round has one call only
inline constexpr std::int64_t kComparedAlways = 4 << 20;  ///< bytes, see above
inline constexpr int kTracedCalls = 3;  ///< of each size and strategy, after those that are timed

/// The strategy of a collective that has one algorithm.
inline constexpr const char* kOnlyStrategy = "default";

struct AllReduceBenchOptions {
  CollectiveId collective_id = CollectiveId::all_reduce;
  std::vector<std::int64_t> sizes;      ///< bytes (collective.h), whole elements of each part
  std::vector<std::string> strategies;  ///< names of execution.strategies; else kOnlyStrategy
  DType type = DType::f32;
  ReduceOp op = ReduceOp::sum;  ///< of a collective that reduces
  int root = 0;                 ///< of one that has it
  bool in_place = true;
  int warm_up = 5;     ///< calls before those that are timed, at least 1
  int iterations = 0;  ///< timed calls; 0: as many as take kSecondsOfASize
  bool pin = true;     ///< a processor for each rank on the CPU, where there are enough (pinning.h)
  bool check = true;   ///< compare results with the exact ones
  bool keep_samples = false;     ///< Measurement::samples
  double budget_seconds = 0;     ///< for measuring again what does not count
  StopRequest stop_requested{};  ///< asked after each round of a strategy
  /// Devices of this process's ranks, transport, time-out, and the table of `auto`.
  train::Execution execution{};

  const Collective& collective() const { return collective_of(collective_id); }
  const char* ranks_as() const { return execution.in_processes ? "processes" : "threads"; }
};

/// Whether the ranks, `ranks` over all processes, are pinned.
bool pins_ranks(const AllReduceBenchOptions& options, int ranks);

/// Calls before those that a round times, but for the first round.
inline int untimed_calls(const AllReduceBenchOptions& options) {
  return std::min(options.warm_up, 2);
}

/// About how long measure_all_reduce() takes with so many ranks, without measuring anything again.
double expected_seconds(const AllReduceBenchOptions& options, int ranks);

/// Gets each measurement once it stays, on rank 0's thread.
using MeasurementListener = std::function<void(const Measurement& measurement)>;

/// Measures all sizes in order and, at each, all strategies in turns, so that those which are
/// compared run at the same time. Rows come in the order of sizes and strategies. Every process
/// gets all measurements; only rank 0 calls `listener`. Throws Stopped where
/// `options.stop_requested` says so. With `trace`, kTracedCalls more calls of each are recorded
/// there. The execution leaves nothing open: train::decided().
std::vector<Measurement> measure_all_reduce(comm::Group& group, AllReduceBenchOptions options,
                                            const MeasurementListener& listener,
                                            train::TraceWriter* trace = nullptr);
/// The same with the threads of this process; decides what the execution leaves open.
std::vector<Measurement> measure_all_reduce(AllReduceBenchOptions options,
                                            const MeasurementListener& listener);

}  // namespace ringlet::bench
