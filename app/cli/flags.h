// The flags that several commands share, and how they become TrainOptions.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "train/files/model_info.h"
#include "train/recipe/options.h"

namespace ringlet::app {

/// The group of flags that a run's state keeps, so that --resume need not repeat them.
inline constexpr const char* kRecipeGroup = "Recipe";
inline constexpr const char* kModelGroup = "Model and data";

/// The flags as the user wrote them, before the model's defaults and a resumed run's recipe are
/// known.
struct RawFlags {
  std::string model = "lenet";
  train::GivenOptions recipe;  ///< rows of train::recipe_options() that were given
  std::string device = "cpu";
  int replicas = 1;
  bool in_processes = false;     ///< --processes was given
  std::optional<int> processes;  ///< with this number
  std::vector<std::string> devices;
  std::optional<bool> overlap;  ///< nothing: where there is room for it
  bool no_out = false;          ///< keep nothing of the run
  std::string cache;            ///< of decoded photographs: "memory" or a file; empty: none
  /// Keys of train::run_options() that were given, and of flags by hand, as "replicas".
  std::set<std::string> given;
  /// Flags that only some data have and that the command line itself gave. Set elsewhere, they may
  /// be meant for other runs.
  std::vector<std::string> data_flags;
  /// With the rows of train::run_options() that were given. `sync` is empty where that is what the
  /// recipe needs.
  train::TrainOptions options;

  RawFlags() { options.execution.sync.clear(); }
};

/// What was given for a row; `otherwise` where nothing was.
template <class T>
T given_or(const RawFlags& flags, const std::string& key, T otherwise) {
  const auto given = flags.recipe.find(key);
  return given == flags.recipe.end() ? otherwise : std::get<T>(given->second);
}

/// Adds --model.
void add_model_flag(CLI::App& app, RawFlags& flags);
/// What --data takes, in words: "fashion-mnist, synthetic (generated images), or ...".
std::string data_choices();
/// Adds --model, --data, --data-dir and the sizes of synthetic data.
void add_data_flags(CLI::App& app, RawFlags& flags);
/// To be called in the command's callback, when nothing but the command line was read: notes which
/// flags of add_data_flags() it has.
void note_data_flags(const CLI::App& app, RawFlags& flags);
/// Whether --precision may be left to the machine: `auto`, of a run that begins.
enum class PrecisionFlag : bool { named, may_be_auto };
/// Adds the flags of the recipe: what decides what is learnt.
void add_recipe_flags(CLI::App& app, RawFlags& flags,
                      PrecisionFlag precision = PrecisionFlag::named);
/// Adds the flags of these rows of train::recipe_options() alone.
void add_recipe_flags(CLI::App& app, RawFlags& flags, const char* group,
                      std::initializer_list<const char*> keys);
/// Adds --precision and --emulate-precision.
void add_precision_flags(CLI::App& app, RawFlags& flags, const char* group = kRecipeGroup,
                         PrecisionFlag precision = PrecisionFlag::named);
/// Whether --precision auto was given.
bool leaves_precision_open(const RawFlags& flags);
/// Adds the flags of these rows of train::run_options(), and of the program's own.
void add_run_flags(CLI::App& app, RawFlags& flags, const char* group,
                   std::initializer_list<const char*> keys);
/// Adds --replicas, --device, --devices, --threads, --workers, --layout and --comm-timeout. With
/// `counts`, --replicas takes several numbers; flags.replicas is then the first of them.
void add_replica_flags(CLI::App& app, RawFlags& flags, std::vector<int>* counts = nullptr);
/// Adds --stages, --pipeline, --recompute and --balance.
void add_stage_flags(CLI::App& app, RawFlags& flags);
/// Adds --processes.
void add_process_flag(CLI::App& app, RawFlags& flags);
/// Adds --tf32, --deterministic, --autotune and --graph.
void add_gpu_flags(CLI::App& app, RawFlags& flags);
/// Adds --sync, --transport, --bucket-kb, --first-bucket-kb, --overlap and --check-replicas.
void add_sync_flags(CLI::App& app, RawFlags& flags);

/// --devices, or as many as --replicas of --device, for each stage; of several stages this
/// process's share of them.
std::vector<DeviceId> devices_of(const RawFlags& flags);
/// The options for a new run: the model's default recipe, changed by what was given.
train::TrainOptions resolve(const RawFlags& flags);
/// The options for a resumed run: its own recipe. Throws UsageError naming each given flag that
/// contradicts it, or the data that `model` (empty if not known) says it was trained on.
train::TrainOptions resolve(const RawFlags& flags, const train::Recipe& saved,
                            const std::optional<train::ModelInfo>& model);

/// Of a new run of a model in stages: where nobody has said how many micro-batches there are, as
/// many as suit a step of so many training samples, which may be less than --batch-size.
void fit_micro_batches(const RawFlags& flags, train::TrainOptions& options, std::int64_t samples);

/// Whether the images of --data NAME are drawn, as many as --synthetic-train and --synthetic-test
/// say.
bool is_generated(const std::string& name);
/// Whether `model` says how many such images it was trained and tested on, a million at most.
bool says_sizes(const train::ModelInfo& model);

/// The data that the options name. Throws DataError, and UsageError for a flag that is not for such
/// data.
data::Splits open_data(const RawFlags& flags, const train::TrainOptions& options);

/// Warns of what the user should know of the data, as pictures that were left out.
void print_notes(const data::Splits& data);

/// The recipe as flags without dashes: what --print-config and OUT/config.toml say of it.
FlagValues values_of(const train::TrainOptions& options);

}  // namespace ringlet::app
