// Rounds of `ringlet bench train --replicas 1,2,4 --processes`: for each, as many processes of this
// program are started as it has replicas. Each measures its own part and leaves it in a file of a
// folder that lives as long as the measurement.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "app/cli/flags.h"
#include "bench/training/scaling_turns.h"
#include "comm/processes/launch.h"
#include "train/recipe/options.h"

namespace ringlet::app {

/// The folder, and its name in the environment.
class ScalingFamilies {
 public:
  ScalingFamilies();
  ~ScalingFamilies();
  ScalingFamilies(const ScalingFamilies&) = delete;
  ScalingFamilies& operator=(const ScalingFamilies&) = delete;

  /// Throws Told where a process has failed and said why, Stopped where somebody asks to stop. It
  /// refers to this object and to `rows`.
  bench::RoundOf rounds_of(const std::vector<bench::ScalingRow>& rows) const;

 private:
  std::vector<bench::RankRound> read(int replicas) const;
  std::filesystem::path folder_;
};

/// Whether this process is one that ScalingFamilies has started.
bool is_scaling_process();

/// What such a process trains.
struct ScalingTask {
  train::TrainOptions options;
  RawFlags flags;  ///< of the data
};

/// Measures its part, with as many replicas as there are processes. Returns the exit code.
int run_scaling_process(const comm::ProcessPosition& position,
                        const std::function<ScalingTask(int replicas)>& part_of);

}  // namespace ringlet::app
