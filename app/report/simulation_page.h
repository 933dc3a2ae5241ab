// The page of `ringlet simulate --report`: time over bytes and over ranks, which strategy is the
// fastest where, and what its time is made of. Latency, bandwidth, adding, ranks and bytes are
// sliders.
//
// The program writes the ways of each strategy (bench/simulation/ways.h) for 2 to 4096 ranks into
// the page, and the script multiplies: no formula stands in it. Without the script the page shows
// the simulation as it was asked for.
#pragma once

#include <string>
#include <vector>

#include "bench/simulation/simulation.h"
#include "bench/simulation/training_step.h"

namespace ringlet::app::report {

/// `rows`: what simulate() made of it. The page begins with its first layout and size, and shows
/// layouts like that (ways.h). `steps`: of a training step, which `spec` says; none: no section.
std::string simulation_page(const bench::Simulation& simulation, const bench::Costs& costs,
                            const std::vector<bench::Simulated>& rows, const bench::StepSpec& spec,
                            const std::vector<bench::SimulatedStep>& steps);

}  // namespace ringlet::app::report
