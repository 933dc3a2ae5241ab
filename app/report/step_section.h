// The section of `ringlet simulate --report` on a training step: what it takes by each strategy,
// and how much of the sums is hidden under backward.
#pragma once

#include <span>

#include "app/report/html.h"
#include "bench/simulation/training_step.h"

namespace ringlet::app::report {

/// Nothing without steps. `spec`: what they are of, but for the sizes of buckets.
Html step_section(const bench::StepSpec& spec, std::span<const bench::SimulatedStep> steps);

}  // namespace ringlet::app::report
