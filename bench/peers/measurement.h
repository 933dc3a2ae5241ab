// One collective timed over its calls, and the line of JSON that says so.
//
// Before each call every rank rewrites its input and all meet in a barrier. A rank's time runs from
// there until it has read its whole result; the call's time is the longest of the ranks'. The
// result is compared with the exact one outside of the timed part: after every call up to 4 MiB,
// after the first and the last above that. `ringlet bench all-reduce` times and writes the same, so
// rows compare.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/all_reduce/collective.h"
#include "bench/all_reduce/measurement.h"
#include "bench/peers/meeting.h"

namespace ringlet::bench::peers {

/// How often.
struct Calls {
  int timed = 0;  ///< 0: as many as take `seconds` with all that belongs to them, 5 to 1000
  double seconds = 0.2;
  int warm_up = 5;
};
inline constexpr int kMostChosen = 1000;

/// How many calls a meeting must have room for.
inline int most_timed(const Calls& calls) { return calls.timed > 0 ? calls.timed : kMostChosen; }

/// The result, on rank 0; the others have nothing but the distances. Who sums and how, its engine,
/// transport and strategy, is the caller's to say.
struct Measurement : bench::Measurement {
  double distance_before = 0, distance_after = 0;  ///< Meeting::core_distance()
};

/// Of collectives that have a root.
inline constexpr int kRoot = 0;

/// One rank's calls of a collective.
struct Work {
  const Collective& collective = collective_of(CollectiveId::all_reduce);
  std::int64_t floats = 0;                            ///< of the size (collective.h)
  std::function<void(int call)> write_input;          ///< number `call`
  std::function<void()> run;                          ///< timed
  std::span<const float> result;                      ///< what the rank has then, and reads
  std::function<std::int64_t(int call)> count_wrong;  ///< elements of it
  /// Before the barrier: an engine may have to make progress of its own there. May be empty.
  std::function<void()> settle{};
};

/// Collective: all ranks call it alike; the meeting has room for most_timed(calls). Warm-up first.
Measurement measure(Meeting& meeting, const Work& work, const Calls& calls);

/// The same of `all_reduce`, which sums `data` over the ranks in place.
Measurement measure(Meeting& meeting, std::span<float> data, const Calls& calls,
                    const std::function<void()>& all_reduce,
                    const std::function<void()>& settle = {});

/// The JSON object that `ringlet bench all-reduce --json` writes of a row, with "cores_ns", the
/// cores' distance before and after; without a line's end.
std::string json_line(const Measurement& measurement);
/// Prints it as a line.
void print_line(const Measurement& measurement);

}  // namespace ringlet::bench::peers
