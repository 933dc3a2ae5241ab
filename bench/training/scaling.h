// How much faster more replicas train; behind `ringlet bench train --replicas 1,2,4`.
//
// A row is a number of replicas. All rows are measured in rounds, in turns: what comes and goes on
// the machine meets them alike, and shows as rounds that differ. A row's figure is the median of
// its rounds, with the interval of judgement.h.
//
//   speedup(p)    = rate(p) / rate(p0)
//   efficiency(p) = speedup(p) p0 / p
//
// where rate is samples a second, and p0 the smallest number of replicas.
// With a fixed batch more replicas cut it finer (strong scaling); with one per replica each has as
// many samples as one alone (weak scaling). Both formulas hold for either.
//
// The parts of a step are those of step_gap.h, with the rest named: no two clocks are compared, and
// of a step's waits for sums the shortest of all ranks is the sum itself. The rank that waited
// least came last.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/core_pace.h"
#include "base/interference.h"
#include "kernels/tensor.h"

namespace ringlet::bench {

enum class BatchRule : std::uint8_t { fixed, per_replica };
inline constexpr BatchRule kBatchRules[] = {BatchRule::fixed, BatchRule::per_replica};
constexpr const char* name_of(BatchRule rule) {
  return rule == BatchRule::fixed ? "fixed" : "per-replica";
}

/// Seconds of a step of one rank by its own clock.
struct RankSeconds {
  double step = 0, compute = 0, sync = 0, update = 0, data = 0;
};

/// What one rank measured in a round.
struct RankRound {
  double seconds = 0;                ///< of all its steps, from an idle device to an idle device
  std::int64_t samples = 0;          ///< of these steps, over all ranks
  std::vector<RankSeconds> steps{};  ///< empty: a GPU's host sees none
  Interference seen{};
  CoreLooks core{};  ///< its core, before and after; a GPU's steps wait for none
};

/// Seconds of a step, means over ranks and steps.
struct ScalingParts {
  double compute = 0;  ///< forward and backward
  double sums = 0;     ///< what every rank waited for sums: what is not hidden of them
  double waiting = 0;  ///< what ranks waited beyond that: for the slowest
  double update = 0;   ///< the optimizer
  double data = 0;
  double between = 0;  ///< what is none of these
  double step() const { return compute + sums + waiting + update + data + between; }
};

struct ScalingPart {
  const char* key;   ///< in JSON
  const char* name;  ///< in a table
  double ScalingParts::*seconds;
};
inline constexpr std::array<ScalingPart, 6> kScalingParts{
    {{"compute", "forward+backward", &ScalingParts::compute},
     {"sums", "sums not hidden", &ScalingParts::sums},
     {"waiting", "waiting", &ScalingParts::waiting},
     {"update", "optimizer", &ScalingParts::update},
     {"data", "data", &ScalingParts::data},
     {"between", "between", &ScalingParts::between}}};

struct ScalingRound {
  double rate = 0;                ///< samples a second
  double step = 0;                ///< seconds
  ScalingParts parts{};           ///< zeros: they are not seen
  std::vector<double> compute{};  ///< seconds of a step, of each rank; empty: likewise
  std::vector<double> last{};     ///< steps in which each rank came last; empty of one rank
};
/// Of all ranks' halves of a round; at least one, with equally many steps.
ScalingRound round_of(std::span<const RankRound> ranks);

/// A figure and its 95 % interval.
struct Estimate {
  double value = 0, low = 0, high = 0;  ///< low and high 0: there is none
  bool has_interval() const { return low > 0; }
};

struct ScalingRow {
  int replicas = 1;
  std::int64_t batch = 0;  ///< samples of a step over all replicas
  bool shares = false;     ///< replicas have no processor or GPU of their own
  ringlet::Layout layout = ringlet::Layout::nchw;  ///< of the activations
  std::vector<ScalingRound> rounds{};
  std::vector<Interference> seen{};  ///< by each rank, over all rounds
  std::vector<CoreLooks> cores{};    ///< likewise
  double quickest = 0, middle = 0;   ///< seconds of rank 0's steps; 0: they are not seen

  // What judge() makes of these.
  Estimate rate{};                 ///< samples a second
  ScalingParts parts{};            ///< of the rounds in the middle, by time
  std::vector<double> last{};      ///< share of the steps in which each rank came last
  double spread = 0;               ///< forward and backward: slowest rank over quickest, less 1
  Estimate speedup, efficiency{};  ///< zeros where this row or the first one does not count
  std::string why_not{};           ///< it decides nothing; empty: it counts

  bool counts() const { return why_not.empty(); }
  bool sees_parts() const { return parts.step() > 0; }
  /// Samples of the replica that has the most.
  std::int64_t share() const { return (batch + replicas - 1) / replicas; }
  double step_seconds() const { return static_cast<double>(batch) / rate.value; }
  /// -1: nobody, of one replica or where it is not seen.
  int often_last() const;
  /// CoreLooks::share() of the replica with the most of it; below 0: not known.
  double shared_core() const;
};

/// Sets a row's figures from its rounds, and whether it counts. Of fewer rounds than
/// judgement.h's kFewestJudged nothing is judged.
void judge(ScalingRow& row);
/// Sets speedup and efficiency. The rows are judged, and ascend by their replicas.
void compare_with_first(std::vector<ScalingRow>& rows);

/// "the machine was busy: 1 of 3 rows does not count"; "" where all do.
std::string not_counting(const std::vector<ScalingRow>& rows);

/// The median of what `figure` makes of medians of the rounds' steps, as samples of the rounds with
/// repetition give them (the bootstrap: Efron 1979): value from the rounds themselves, low and high
/// around 95 %. The samples are the same in each call. Without an interval where a row has fewer
/// than kFewestJudged rounds.
using FigureOfSteps = std::function<double(std::span<const double> steps)>;
Estimate resampled(std::span<const ScalingRow* const> rows, const FigureOfSteps& figure);

}  // namespace ringlet::bench
