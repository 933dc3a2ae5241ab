#include "app/report/run_folder.h"

#include <algorithm>
#include <system_error>

#include "app/report/svg_plot.h"
#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "train/files/state.h"

namespace ringlet::app::report {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRecordFile = "run.json";
constexpr std::uintmax_t kMostText = 1 << 20;  // bytes of a text of a run's; ours have some KiB

/// Stores what `read` returns; turns its error into a note.
template <class Read>
void or_note(RunFolder& run, Read read) {
  try {
    read();
  } catch (const FileError& error) {
    run.notes.emplace_back(error.what());
  }
}

/// What cannot be looked at is there: whoever reads it says why that fails.
bool is_missing(const fs::path& path) {
  std::error_code error;
  return fs::status(path, error).type() == fs::file_type::not_found;
}

void read_record(RunFolder& run) {
  const fs::path file = run.path / kRecordFile;
  if (is_missing(file)) {
    run.notes.push_back(file.string() + " is missing: nothing is known of data and machine");
    return;
  }
  or_note(run, [&] { run.facts = read_facts(run.path); });
}

void read_state_of(RunFolder& run) {
  if (is_missing(run.path / "state")) return;
  or_note(run, [&] {
    const train::SavedState state = train::read_state(run.path);
    run.recipe = state.recipe;
    run.data_hash = state.data_hash;
    run.state_step = state.progress.step;
    run.weights = state.folder / "model.safetensors";
  });
}

std::string name_of(const fs::path& folder) {
  const fs::path whole = fs::weakly_canonical(folder);
  return whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
}

}  // namespace

std::string RunFolder::model_name() const {
  const std::string model = facts ? facts->text("/model/name") : "";
  if (!model.empty()) return model;
  return recipe ? recipe->model : "a model";
}

std::string RunFolder::data_name() const {
  const std::string data = facts ? facts->text("/data/name") : "";
  if (!data.empty()) return data;
  return recipe ? recipe->data : "unknown data";
}

RunFacts read_facts(const fs::path& folder) {
  const fs::path file = folder / kRecordFile;
  return {read_text(file, kMostText), file.string()};
}

RunFolder read_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw FileError(folder.string() + " is not a folder; name the --out of a run");
  }
  if (is_missing(folder / "metrics.jsonl")) {
    throw FileError(folder.string() +
                    " holds no metrics.jsonl, which a run writes; name the --out of a run");
  }
  RunFolder run;
  run.path = folder;
  run.name = name_of(folder);
  run.metrics = train::read_metrics(folder / "metrics.jsonl");
  if (run.metrics.cut_off) {
    run.notes.push_back(
        (folder / "metrics.jsonl").string() +
        ": the last line breaks off (the run was killed, or still goes on); left out");
  }
  read_record(run);
  read_state_of(run);
  run.finished = fs::exists(folder / "model.safetensors", error);
  if (run.finished) run.weights = folder / "model.safetensors";
  if (!is_missing(folder / "config.toml")) {
    or_note(run, [&] { run.config = read_text(folder / "config.toml", kMostText); });
  }
  return run;
}

std::vector<RunFolder> read_runs(const std::vector<fs::path>& folders) {
  std::vector<RunFolder> runs;
  for (const fs::path& folder : folders) runs.push_back(read_run(folder));
  const auto shared = [&](const RunFolder& run) {
    return std::count_if(runs.begin(), runs.end(), [&](const RunFolder& other) {
      return name_of(other.path) == name_of(run.path);
    });
  };
  for (RunFolder& run : runs) {
    if (shared(run) > 1) run.name = run.path.string();
  }
  return runs;
}

RunResult result_of(const RunFolder& run) {
  RunResult result;
  if (run.metrics.steps.size() > 0) result.steps = run.metrics.steps.step.back();
  double samples = 0, sync = 0;
  for (const train::EpochMetrics& epoch : run.metrics.epochs) {
    result.epoch = epoch.epoch;
    result.train_loss = epoch.train_loss;
    result.test_loss = epoch.test_loss;
    result.test_accuracy = epoch.test_accuracy;
    result.test_figures = epoch.test_figures;
    if (!(epoch.test_accuracy <= result.best_accuracy) && std::isfinite(epoch.test_accuracy)) {
      result.best_accuracy = epoch.test_accuracy;
      result.best_epoch = epoch.epoch;
    }
    result.seconds += epoch.seconds;
    samples += epoch.seconds * epoch.samples_per_second;
    sync += epoch.seconds * epoch.sync_share;
  }
  if (result.seconds > 0) {
    result.speed = samples / result.seconds;
    result.sync_share = sync / result.seconds;
  }
  return result;
}

std::size_t best_run(const std::vector<RunFolder>& runs) {
  const auto worse = [](const RunFolder& a, const RunFolder& b) {
    const double of_a = result_of(a).test_accuracy, of_b = result_of(b).test_accuracy;
    return std::isfinite(of_b) && !(of_a >= of_b);
  };
  return static_cast<std::size_t>(std::max_element(runs.begin(), runs.end(), worse) - runs.begin());
}

int color_of(const std::vector<RunFolder>& runs, std::size_t run) {
  if (run == best_run(runs)) return kBest;
  return run == 0 || runs.size() == 2 ? kBaseline : kGrey;
}

}  // namespace ringlet::app::report
