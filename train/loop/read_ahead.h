// Samples that are read while a run goes on: how far ahead, and whether there are such.
#pragma once

#include <cstdint>

#include "train/setup/run_setup.h"

namespace ringlet::train {

/// Whether samples are read while the run goes on: one may fail then.
inline bool reads(const RunSetup& setup) { return setup.data.train->images().empty(); }

/// Batches of a rank from one step's beginning up to the end of the first that all ranks can leave
/// out when they hear of it now: those in flight are made.
inline std::int64_t batches_in_sight(const RunSetup& setup, int rank) {
  return setup.partition.units(rank) * (2 + setup.steps_in_flight);
}

}  // namespace ringlet::train
