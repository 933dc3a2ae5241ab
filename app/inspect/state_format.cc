// A saved state: how far a run has come, by which recipe, and whether it can go on from there.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/inspect/format.h"
#include "app/inspect/parts.h"
#include "base/files/atomic_file.h"
#include "train/files/centres.h"
#include "train/files/recipe_json.h"
#include "train/files/state_json.h"

namespace ringlet::app::inspect {

namespace fs = std::filesystem;

namespace {

/// The tensors of both files, or why they are not there.
struct Weights {
  std::vector<TensorSummary> model, optimizer;
  std::string problem;
  std::int64_t broken = 0;  // NaN and infinite numbers

  Weights(const fs::path& folder, const train::FileSums& sums) {
    const auto summarised = [&](const std::string& name) {
      train::SafetensorsStream stream(folder / name);
      std::vector<TensorSummary> tensors = summarise_tensors(stream);
      const auto own = sums.find(name);
      if (own == sums.end()) return tensors;
      const fs::path file = folder / name;
      train::require_sum({{file.filename().string(), own->second}}, file, stream.sum());
      return tensors;
    };
    try {
      model = summarised("model.safetensors");
      optimizer = summarised("optimizer.safetensors");
      for (const auto& [name, sum] : sums) {
        const bool apart = fs::path(name).parent_path() == train::kCentresFolder;
        if (apart || name == train::kCentresFile) add_centres(name, summarised(name));
      }
    } catch (const FileError& error) {
      problem = error.what();
      return;
    }
    for (const auto* tensors : {&model, &optimizer}) {
      for (const TensorSummary& tensor : *tensors) {
        broken += tensor.statistics.nans() + tensor.statistics.infinities();
      }
    }
    for (const TensorSummary& tensor : optimizer) find_weight_of(tensor.spec);
  }

 private:
  /// Under the names that they have for the optimiser; of a file of some rows, with its name.
  void add_centres(const std::string& file, std::vector<TensorSummary> centres) {
    for (TensorSummary& tensor : centres) {
      const bool apart = file != train::kCentresFile;
      tensor.spec.name = (apart ? file + ": " : "centres.") + tensor.spec.name;
      model.push_back(std::move(tensor));
    }
  }

  /// Every tensor of the optimiser's belongs to a weight of its name, type and shape. Where there
  /// are several for a weight, their names are "ARENA/WEIGHT".
  void find_weight_of(const train::TensorSpec& tensor) {
    const bool found = std::any_of(model.begin(), model.end(), [&](const TensorSummary& weight) {
      return (weight.spec.name == tensor.name || tensor.name.ends_with("/" + weight.spec.name)) &&
             weight.spec.dtype == tensor.dtype && weight.spec.shape == tensor.shape;
    });
    if (!found && problem.empty()) {
      problem = fmt::format("optimizer.safetensors has {} {}, model.safetensors has not",
                            tensor.name, describe(tensor));
    }
  }
};

Value value_of(const nlohmann::json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_float()) return json.get<double>();
  return json.dump();
}

Table recipe_table(const train::Recipe& recipe) {
  Table table{"recipe", {"recipe", "value"}, {}};
  const nlohmann::json json = all_fields(recipe);
  for (const auto& [name, value] : json.items()) {
    table.rows.push_back({name, value_of(value)});
  }
  return table;
}

struct WholeState {
  train::StateJson json;
  Weights weights;
};

/// A live run may replace its state meanwhile. What belongs to two of them is read once more.
WholeState read_whole(const fs::path& folder) {
  constexpr int kTries = 5;
  for (int i = 1;; ++i) {
    const train::StateJson json = train::read_state_json(folder / "state.json");
    WholeState state{json, Weights(folder, json.sums)};
    if (i == kTries || state.weights.problem.empty()) return state;
    if (train::read_state_json(folder / "state.json").sums == json.sums) return state;
  }
}

}  // namespace

void add_state(Document& document, const fs::path& folder) {
  const auto [state, weights] = read_whole(folder);
  const train::Progress& progress = state.progress;
  const auto samples = static_cast<double>(progress.epoch_samples);
  const auto add = [&](const char* name, const Value& value) {
    document.facts.push_back({name, value});
  };
  add("steps done", progress.step);
  add("samples of the epoch under way", progress.epoch_samples);
  if (progress.epoch_samples > 0) {
    add("their loss", progress.epoch_loss / samples);
  } else {
    add("their loss", {});
  }
  add("epoch waits for its test", progress.untested.has_value());
  if (progress.unverified || !progress.best.empty()) {
    add("step waits for its verification", progress.unverified);
  }
  if (progress.best_test) {
    const train::BestTest& best = *progress.best_test;
    add("best test is by", best.by);
    add("best test", {best.value, best.by == "accuracy" ? Form::share : Form::plain});
    add("step of the best test", best.step);
  }
  if (progress.stopped) add("ended by --patience", true);
  Table lengths{"former lengths", {"until step", "epochs"}, {}};
  for (const train::FormerLength& length : progress.lengths) {
    lengths.rows.push_back({length.step, length.epochs});
  }
  if (!lengths.rows.empty()) document.tables.push_back(std::move(lengths));
  Table best{"best on pairs", {"set", "accuracy", "step"}, {}};
  for (const train::BestVerification& of : progress.best) {
    best.rows.push_back({of.set, {of.accuracy, Form::share}, of.step});
  }
  if (!best.rows.empty()) document.tables.push_back(std::move(best));
  if (state.loss_scale) {
    add("loss scale", state.loss_scale->scale);
    add("skipped steps", state.loss_scale->skips);
  }
  add("data hash", fmt::format("{:016x}", state.data_hash));
  add("broken numbers", weights.broken);
  add("can be resumed", weights.problem.empty());
  if (!weights.problem.empty()) {
    document.warnings.push_back("it cannot be resumed: " + weights.problem);
  }
  if (weights.broken > 0) {
    document.warnings.push_back(
        "there are NaN or infinite numbers in its weights or in the optimiser's state; a "
        "run that goes on from them stops at its first step");
  }
  document.tables.push_back(recipe_table(state.recipe));
}

namespace {

bool recognises_state(const Subject& subject) {
  std::error_code error;
  if (subject.is_folder) return fs::exists(subject.path / "state.json", error);
  return subject.head.starts_with('{') && subject.head.find("\"data_hash\"") != std::string::npos &&
         subject.head.find("\"recipe\"") != std::string::npos;
}

Document describe_state(const Subject& subject, const Wishes&) {
  Document document{subject.path.string(), "state of a run", {}, {}};
  const fs::path folder = subject.is_folder ? subject.path : subject.path.parent_path();
  add_state(document, folder.empty() ? fs::path(".") : folder);
  document.tables.push_back(file_table(folder.empty() ? fs::path(".") : folder));
  return document;
}

}  // namespace

const Format kState{recognises_state, describe_state};

}  // namespace ringlet::app::inspect
