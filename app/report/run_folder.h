// The content of a run's folder, as far as a report shows it; the final numbers of a run, and which
// of several runs came out best.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/report/run_facts.h"
#include "train/recipe/options.h"
#include "train/telemetry/metrics_reader.h"

namespace ringlet::app::report {

/// Begins the line of config.toml that names the settings which follow from the pictures, and which
/// nobody gave: "# chosen by the pictures: epochs, lr".
inline constexpr std::string_view kChosenByPictures = "# chosen by the pictures:";

struct RunFolder {
  std::filesystem::path path;
  std::string name;                     ///< the folder's, or its path where several are alike
  train::Metrics metrics;               ///< metrics.jsonl
  std::optional<RunFacts> facts;        ///< run.json, where it is there
  std::optional<train::Recipe> recipe;  ///< of state/
  std::uint64_t data_hash = 0;          ///< of the training data, with the recipe
  std::string config;                   ///< config.toml's text, or empty
  std::vector<std::string> notes;       ///< a line for each thing that is missing

  /// The weights: model.safetensors; where the run has not ended, those of its state.
  std::optional<std::filesystem::path> weights;
  std::int64_t state_step = 0;  ///< after which step that was saved
  bool finished = false;        ///< model.safetensors is there

  /// The model's name from run.json or the recipe, else "a model".
  std::string model_name() const;
  std::string data_name() const;
};

/// Reads the folder's run.json. Throws FileError.
RunFacts read_facts(const std::filesystem::path& folder);

/// Reads a folder. Throws FileError where it is none, or has no metrics or broken ones; the rest
/// may be missing.
RunFolder read_run(const std::filesystem::path& folder);

/// Reads several, and gives them names that differ.
std::vector<RunFolder> read_runs(const std::vector<std::filesystem::path>& folders);

struct RunResult {
  std::int64_t steps = 0;
  double train_loss = NAN, test_loss = NAN, test_accuracy = NAN;  ///< of the last epoch
  std::int64_t epoch = 0;                                         ///< which is the last one
  std::map<std::string, double> test_figures{};                   ///< of the last epoch
  double best_accuracy = NAN;                                     ///< of all epochs
  std::int64_t best_epoch = 0;
  double seconds = 0, speed = NAN, sync_share = NAN;  ///< over all epochs
};

RunResult result_of(const RunFolder& run);

/// The run whose last test accuracy is the highest; of equals, the first. 0 where none has one.
std::size_t best_run(const std::vector<RunFolder>& runs);

/// The colour of a run in all plots and tables: kBest, kBaseline for the first one, kGrey for the
/// others. Of two runs neither is grey.
int color_of(const std::vector<RunFolder>& runs, std::size_t run);

}  // namespace ringlet::app::report
