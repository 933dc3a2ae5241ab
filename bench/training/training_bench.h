// How fast training steps are, and where their time goes; behind `ringlet bench train`.
#pragma once

#include <cstdint>
#include <vector>

#include "train/run_setup.h"
#include "train/telemetry/reports.h"

namespace ringlet::bench {

struct TrainingSpeed {
  std::int64_t steps = 0;     ///< measured, after the warm-up
  double median_seconds = 0;  ///< of a step, by rank 0's clock
  double fastest_seconds = 0;
  train::PhaseSeconds phases;     ///< of rank 0, mean of a step
  double samples_per_second = 0;  ///< global batch / median
  double nominal_flops = 0;       ///< of a step over all ranks: every output of every layer
  double computed_flops = 0;      ///< of a step over all ranks: what the fused kernels compute
};

/// Runs `warm_up` and then `steps` optimiser steps, all ranks together. Throws data::Stopped where
/// RunSetup::stop_requested says so meanwhile.
TrainingSpeed measure_training(const train::RunSetup& setup, std::int64_t warm_up,
                               std::int64_t steps);

}  // namespace ringlet::bench
