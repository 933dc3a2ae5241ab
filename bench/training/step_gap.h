// Why p replicas take longer than a p-th of one replica's time; behind `ringlet bench train --why`.
//
// Three kinds of runs are measured in turns: one replica with the whole batch, one with a replica's
// share of it, and all replicas together. A step is computing (forward, backward), waiting for sums
// (sync) and the rest (data, update, what lies between). Then
//
//   together - alone / p = smaller share   share.compute - alone.compute / p
//                        + disturbed       together.compute - share.compute
//                        + waiting         together.sync - the shortest sync of all ranks
//                        + sums            the shortest sync of all ranks
//                        + does not shrink together.rest - alone.rest / p
//
// since both sides have the same terms. No two clocks are compared: a rank that waited less than
// the others came last. So what all waited at least is the sum itself, and what a rank waited
// beyond that, it waited for the slowest.
//
// The quickest step of each kind counts: beside another program a whole round is hardly ever left
// alone, a step of a few milliseconds is.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "train/setup/run_setup.h"

namespace ringlet::bench {

/// Seconds of a step, means over the ranks.
struct StepParts {
  double compute = 0;
  double waiting = 0;  ///< of sync: for the slowest rank
  double sums = 0;     ///< of sync: what every rank waited
  double rest = 0;
  double step() const { return compute + waiting + sums + rest; }
};

/// Seconds of one step of one rank.
struct RankStep {
  double step = 0, compute = 0, sync = 0;
};

/// Of each step. `ranks`: the steps of each rank, equally many.
std::vector<StepParts> parts_of(std::span<const std::vector<RankStep>> ranks);

struct StepGap {
  int ranks = 0;
  double ideal = 0;  ///< a p-th of one replica's step
  double smaller_share = 0, disturbed = 0, waiting = 0, sums = 0, does_not_shrink = 0;
  double step = 0;  ///< of all replicas together
  /// How much longer the middle one of the steps of a kind took than the quickest, at most: 1 on a
  /// machine with nothing else to do.
  double unrest = 1;
  std::int64_t steps = 0;  ///< measured of each kind, at least
  double gap() const { return step - ideal; }
};

/// Of the quickest steps; `unrest` and `steps` are the caller's.
StepGap gap_between(const StepParts& alone, const StepParts& share, const StepParts& together,
                    int ranks);

/// Measures for `seconds`, at least three rounds of steps. `setup` makes a run of so many replicas
/// with this global batch. Throws Stopped where somebody asks to stop.
using SetupOf = std::function<train::RunSetup(int replicas, std::int64_t batch_size)>;
StepGap measure_step_gap(const SetupOf& setup, int ranks, std::int64_t batch_size, double seconds);

}  // namespace ringlet::bench
