// The flags of `ringlet simulate`, and what they ask for.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/all_reduce/measurement.h"
#include "bench/simulation/costs.h"
#include "bench/simulation/simulation.h"
#include "bench/simulation/training_step.h"

namespace ringlet::app {

/// The flags as the user wrote them; 0 and empty: not given.
struct SimulateFlags {
  std::vector<std::string> strategies{"all"};
  std::vector<int> ranks{};
  std::vector<std::int64_t> bytes{};
  std::string machines{};
  std::vector<std::string> slow{};
  double alpha = 0, alpha_inside = 0;            ///< seconds
  double beta = 0, beta_inside = 0, adding = 0;  ///< bytes a second
  bench::StepSpec step{};                        ///< no model: none is asked for
  std::vector<std::int64_t> bucket_kb{};
  std::filesystem::path from{}, measured{}, json{}, trace{}, report{};
  bool force = false;
  /// The command line itself gave them. Set elsewhere, they may be meant for a training.
  bool types_batch = false, types_buckets = false;
};

void add_simulate_flags(CLI::App& command, SimulateFlags& flags);

/// To be called in the command's callback, when nothing but the command line was read.
void note_step_flags(const CLI::App& command, SimulateFlags& flags);

/// From the flags, a file, or this machine's table. Throws UsageError where nothing says them.
bench::Costs costs_of(const SimulateFlags& flags);

/// Ranks and sizes that are not given are those of `measured`, else 2, 4 and 8 (or all of the
/// machines), and 504 KiB, or all gradients of the step's model. Throws UsageError for what cannot
/// be.
bench::Simulation simulation_of(const SimulateFlags& flags, const bench::Costs& costs,
                                const std::vector<bench::Measurement>& measured);

/// A step for each size of buckets; none where none is asked for.
std::vector<bench::StepSpec> steps_of(const SimulateFlags& flags);

}  // namespace ringlet::app
