// What `ringlet bench train` has, whether one number of replicas is measured or several.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/cli/flags.h"
#include "bench/training/scaling.h"
#include "comm/core/group.h"
#include "data/dataset.h"
#include "train/setup/run_setup.h"

namespace ringlet::app {

struct BenchFlags {
  RawFlags train;
  std::int64_t warm_up = 10;
  std::int64_t steps = 50;
  bool why = false;
  double why_seconds = 20;
  bool strict = false;
  std::filesystem::path json;
  bool force = false;

  std::vector<int> replicas{1};  ///< several: scaling_bench.h
  bench::BatchRule batch = bench::BatchRule::fixed;
  bool processes = false;  ///< a process for each replica
  double budget_seconds = 60;
  std::filesystem::path report;

  /// A flag of the command line that several numbers have alone; empty: none.
  std::string for_several{};

  bool measures_scaling() const { return replicas.size() > 1; }
};

inline constexpr int kManyEpochs =
    1'000'000;  // a bench ends after its steps, never with its epochs

bool on_gpu(const train::Execution& execution);

/// Of images that are generated, as many as fill whole batches of `batch`, one at least, where
/// nobody says how many.
void fill_batches(const RawFlags& flags, train::TrainOptions& options, std::int64_t batch);

/// A run whose steps all have a whole batch, of all images at most: what an epoch has beyond these
/// is left out. A short last batch would be no step of the size that is told, with shapes of its
/// own, for which libraries plan anew inside of the steps that are measured.
train::RunSetup make_bench_setup(train::TrainOptions options, const data::Splits& data, int ranks,
                                 comm::Group* group = nullptr);

/// Where and by which build it was measured, and the settings that hold for any number of replicas.
nlohmann::json training_settings_json(const train::RunSetup& setup);

}  // namespace ringlet::app
