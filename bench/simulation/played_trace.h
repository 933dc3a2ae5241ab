// The trace of a simulation: what was played, as a timeline in which each strategy is a call
// (train/telemetry/trace_writer.h). It says of each message and of each touch of memory what that
// of a real run says, so whatever reads traces reads it. In a training step each bucket is a call,
// beside forward and backward.
#pragma once

#include <vector>

#include "bench/simulation/simulation.h"
#include "bench/simulation/training_step.h"
#include "train/telemetry/trace_writer.h"

namespace ringlet::bench {

/// Adds a call for each size and strategy of the first layout, one after the other, and then each
/// of the steps by each strategy; of those that can be played there, with as many ranks as
/// comm::kMostAddressed at most. Returns the number of calls.
int add_played(train::TraceWriter& trace, const Simulation& simulation, const Costs& costs,
               const std::vector<StepSpec>& steps = {});

}  // namespace ringlet::bench
