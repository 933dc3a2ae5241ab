// How fast training steps are, and where their time goes; behind `ringlet bench train`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/interference.h"
#include "train/reports/reports.h"
#include "train/setup/run_setup.h"

namespace ringlet::bench {

/// Seconds of a step by rank 0's clock.
struct StepSeconds {
  double mean = 0;  ///< all of the time, stalls too, over all steps
  /// Of the steps that the host waited for at both ends, and so knows how long they took. Where
  /// there is none, as where the host is what is slow, both are the mean.
  double median = 0, fastest = 0;
};

/// `steps`: at least one, of a run in their order, the first of which begins with its own launch.
StepSeconds step_seconds(std::span<const train::StepReport> steps);

/// A stretch of the measured steps.
struct SpeedRound {
  double samples_per_second = 0;
  train::PhaseSeconds phases;  ///< of rank 0, mean of a step
};

struct TrainingSpeed {
  std::int64_t steps = 0;  ///< measured, after the warm-up
  StepSeconds step{};
  train::PhaseSeconds phases;     ///< of rank 0, mean of a step
  double samples_per_second = 0;  ///< all samples over all of the time
  /// Ten of about equally many steps, or one of each step, in their order: how much figures differ.
  std::vector<SpeedRound> rounds{};
  double nominal_flops = 0;   ///< of a step over all ranks: every output of every layer
  double computed_flops = 0;  ///< of a step over all ranks: what the fused kernels compute
  /// Why the figures do not count: what other work did to the worst of the ranks' threads
  /// meanwhile. Empty: they do.
  std::string why_not{};
  double shared_core = -1;  ///< of the worst of them (CoreLooks::share()); below 0: not known
};

/// Why steps do not count in which the ranks' threads saw this; "" if they do. A step has all that
/// was waited in it, so a share of the time that is much (base/interference.h) is that share of the
/// figures. `in_turns`: the threads outnumber the processors, and keep each other waiting.
std::string why_not(std::span<const Interference> ranks, bool in_turns);

/// What rank 0's device did beside its steps. Asking costs the first steps a little, those that are
/// measured nothing.
struct DeviceNotes {
  double first_step_seconds = 0;     ///< from its launch to its end: it makes the libraries' plans
  std::vector<std::string> lines{};  ///< Stream::notes() of its compute stream
};

/// Runs `warm_up` and then `steps` optimiser steps, all ranks together. Throws Stopped where
/// RunSetup::stop_requested says so meanwhile. `warm_up`: at least one. `notes` may be null.
TrainingSpeed measure_training(const train::RunSetup& setup, std::int64_t warm_up,
                               std::int64_t steps, DeviceNotes* notes = nullptr);

}  // namespace ringlet::bench
