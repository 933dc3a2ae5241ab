// A training step on machines that are not there: gradients become final along backward, as the
// plan of the model's dry run has it, in proportion to the flops. A bucket that is full is summed
// while backward goes on, one after another on each rank, as train/sync/gradient_sync.h does.
//
// Not modelled: reading data, the update, and that half of a batch may take more than half the
// time (`ringlet bench train --why` measures that).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/simulation/simulation.h"

namespace ringlet::bench {

struct StepSpec {
  std::string model{};
  std::int64_t batch_size = 256;  ///< samples over all ranks
  double compute_s = 0;           ///< forward and backward of them all by one replica
  std::int64_t bucket_kb = -1;    ///< negative: as with_bucket_sizes() has it
};

/// A bucket.
struct StepSum {
  std::int64_t bytes = 0;
  double ready = 0;  ///< the share of forward and backward after which it is full
};
struct StepPlan {
  double forward = 0;  ///< its share of forward and backward
  std::vector<StepSum> sums{};
};
/// `between_machines`: what the usual size of buckets depends on.
StepPlan step_plan(const StepSpec& spec, bool between_machines);

/// How long each rank of `network` computes: a slow one takes longer.
std::vector<double> compute_seconds(const StepSpec& spec, const comm::Network& network);

struct SimulatedStep {
  std::string strategy;
  Layout layout{};
  std::int64_t bucket_kb = -1;
  int buckets = 0;
  double compute_s = 0;     ///< of the rank that computes longest
  double sums_s = 0;        ///< of all buckets one after another, if nobody waited for gradients
  double seconds = 0;       ///< with overlap
  double unoverlapped = 0;  ///< if the sums began behind backward
  double efficiency = 0;    ///< of `seconds`, against one replica's time over the ranks
  std::string why_not{};

  /// The share of the sums that costs no time.
  double hidden() const;
};

/// A row for each layout and strategy.
std::vector<SimulatedStep> simulate_step(const Simulation& simulation, const StepSpec& spec,
                                         const Costs& costs);

std::string to_text(const std::vector<SimulatedStep>& steps, const StepSpec& spec);
nlohmann::json to_json(const std::vector<SimulatedStep>& steps);

}  // namespace ringlet::bench
