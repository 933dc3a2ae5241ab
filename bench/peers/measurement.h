// One all-reduce timed over its calls, and the line of JSON that says so.
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

#include "bench/peers/meeting.h"

namespace ringlet::bench::peers {

/// Who sums, and how.
struct Engine {
  std::string name;       ///< openmpi, gloo, floor
  std::string transport;  ///< how bytes go: vader, ucx, tcp, ...
  std::string strategy;   ///< the algorithm
  std::string ranks_as = "processes";
};

/// How often.
struct Calls {
  int timed = 0;  ///< 0: as many as take 0.2 s with all that belongs to them, 5 to 1000
  int warm_up = 5;
};
inline constexpr int kMostChosen = 1000;

/// How many calls a meeting must have room for.
inline int most_timed(const Calls& calls) { return calls.timed > 0 ? calls.timed : kMostChosen; }

struct Times {
  double median = 0, min = 0, p99 = 0;  ///< seconds
};

/// Of at least one call; p99 is the smallest that 99 % of the calls do not exceed.
Times times_of(std::vector<double> seconds);

/// The result, on rank 0; the others have nothing.
struct Measurement {
  Times times;
  int iterations = 0;      ///< timed calls
  std::int64_t wrong = 0;  ///< elements, over all ranks and calls that were checked
  double distance_before = 0, distance_after = 0;  ///< Meeting::core_distance()
};

/// Runs `all_reduce`, which sums `data` over the ranks in place, warm-up first. Collective: all
/// ranks call it alike; the meeting has room for most_timed(calls). `settle` runs before the
/// barrier (an engine may have to make progress of its own there); may be empty.
Measurement measure(Meeting& meeting, std::span<float> data, const Calls& calls,
                    const std::function<void()>& all_reduce,
                    const std::function<void()>& settle = {});

/// One line without its end: a JSON object with the names that `ringlet bench all-reduce --json`
/// uses, and "cores_ns", the cores' distance before and after.
std::string json_line(const Engine& engine, int ranks, std::int64_t bytes,
                      const Measurement& measurement);

}  // namespace ringlet::bench::peers
