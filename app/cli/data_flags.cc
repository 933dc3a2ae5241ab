// The flags that say what is learnt from what: the model and its data.
#include <fmt/format.h>

#include <algorithm>

#include "app/cli/checks.h"
#include "app/cli/error_exit.h"
#include "app/cli/flags.h"
#include "app/cli/outputs.h"
#include "app/cli/signals.h"
#include "base/processors.h"
#include "data/idx_dataset.h"
#include "data/image_folder.h"
#include "data/open_dataset.h"
#include "train/files/pixel_cache.h"
#include "train/recipe/models.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::app {

namespace {

constexpr const char* kDataDir = "--data-dir";
constexpr const char* kSyntheticTrain = "--synthetic-train";
constexpr const char* kSyntheticTest = "--synthetic-test";

/// Throws UsageError unless `flag`, one of those that only some data have, is for `data`.
void require_for_data(const std::string& flag, const std::string& data) {
  const data::DataNeeds wanted = flag == kDataDir ? data::DataNeeds::files : data::DataNeeds::sizes;
  const data::NamedDataset* named = data::find_dataset(data);
  if (named != nullptr && named->needs == wanted) return;
  std::vector<std::string> fitting;
  for (const data::NamedDataset& dataset : data::named_datasets()) {
    if (dataset.needs == wanted) fitting.push_back(dataset.name);
  }
  throw UsageError(fmt::format("{} is for --data {}, and these data are {}; leave one of them out",
                               flag, fmt::join(fitting, " or "), data));
}

/// Throws UsageError for a flag that is for photographs in a folder, where the data are others. Of
/// what is no data set, its opening tells. Nobody gave what a run that goes on has of itself.
void require_for_photographs(const RawFlags& flags, const train::TrainOptions& options) {
  const std::string& data = options.recipe.data;
  const bool is_known = data::find_dataset(data) != nullptr || !data::all_idx_files(data).empty();
  if (data::is_picture_folder(data) || !is_known) return;
  const auto refuse = [&](bool given, const std::string& flag) {
    if (!given) return;
    throw UsageError(fmt::format(
        "{} is about photographs in a folder (train/CLASS/*), and these data are {}; leave it out",
        flag, data));
  };
  const train::Recipe none;
  for (const auto& row : train::recipe_options().rows()) {
    const auto given = flags.recipe.find(row.key);
    const bool says = given != flags.recipe.end() && given->second != row.get(none);
    const bool fits = row.key == "image_size" && data::takes_image_size(data);
    refuse(row.of_photographs && says && !fits, row.flag_name());
  }
  refuse(flags.options.skip_broken, "--skip-broken");
}

/// Throws UsageError for a folder that is not here, as one that a run was begun with.
void require_here(const std::string& data) {
  if (data::is_dataset(data)) return;
  throw UsageError(fmt::format(
      "the run's data were in the folder '{}', which is not here; say with --data where they are "
      "now",
      data));
}

/// Reads all samples once where --cache says so.
data::Splits cached(data::Splits splits, const std::string& cache, const train::Recipe& recipe) {
  if (cache.empty()) return splits;
  require_name("--cache", cache);
  const bool cuts = recipe.augment == data::name_of(data::Augment::random_resized_crop);
  if (cuts && recipe.crop_from == 0 && splits.train->photographs()) {
    throw UsageError(
        "--augment random-resized-crop cuts from whole pictures, which --cache does not keep; let "
        "it cut from smaller ones, as with --crop-from 256, or leave --cache out");
  }
  return train::with_cache(std::move(splits), cache, usable_processors());
}

}  // namespace

void add_model_flag(CLI::App& app, RawFlags& flags) {
  app.add_option_function<std::string>(
         "--model",
         [&flags](const std::string& name) { flags.recipe["model"] = flags.model = name; },
         fmt::format("which network and recipe [{}]", flags.model))
      ->check(one_of(train::model_names()))
      ->type_name(fmt::format("{}", fmt::join(train::model_names(), "|")))
      ->group(kModelGroup);
}

std::string data_choices() {
  std::string choices;
  for (const data::NamedDataset& dataset : data::named_datasets()) {
    choices += dataset.name + (dataset.parameter.empty() ? "" : ":" + dataset.parameter) +
               (dataset.help.empty() ? "" : " (" + dataset.help + ")") + ", ";
  }
  return choices + "or " + data::kDataFolder;
}

void add_data_flags(CLI::App& app, RawFlags& flags) {
  const char* group = kModelGroup;
  add_model_flag(app, flags);
  const train::Recipe defaults = train::default_recipe(flags.model);
  app.add_option_function<std::string>(
         "--data", [&flags](const std::string& name) { flags.recipe["data"] = name; },
         fmt::format("{} [{}]", data_choices(), given_or(flags, "data", defaults.data)))
      ->check(data_name())
      ->type_name(fmt::format("{}|DIR", fmt::join(data::dataset_names(), "|")))
      ->group(group);
  add_run_flags(app, flags, group, {"data_dir", "synthetic_train", "synthetic_test"});
}

void note_data_flags(const CLI::App& app, RawFlags& flags) {
  for (const char* flag : {kDataDir, kSyntheticTrain, kSyntheticTest}) {
    if (app.count(flag) > 0) flags.data_flags.emplace_back(flag);
  }
}

bool is_generated(const std::string& name) {
  const data::NamedDataset* named = data::find_dataset(name);
  return named != nullptr && named->needs == data::DataNeeds::sizes;
}

bool says_sizes(const train::ModelInfo& model) {
  constexpr std::int64_t kMost = 1'000'000;  // a model from elsewhere shall not fill the memory
  return is_generated(model.data) && model.train_samples > 0 &&
         std::max(model.train_samples, model.test_samples) <= kMost;
}

data::Splits open_data(const RawFlags& flags, const train::TrainOptions& options) {
  for (const std::string& flag : flags.data_flags) require_for_data(flag, options.recipe.data);
  require_here(options.recipe.data);
  require_for_photographs(flags, options);
  return cached(
      data::open_dataset(options.recipe.data,
                         {.directory = options.files.data_dir,
                          .synthetic_train = options.synthetic_train,
                          .synthetic_test = options.synthetic_test,
                          .allow_unseen_targets = options.allow_unseen_targets,
                          .pictures = static_cast<const data::PictureSpec&>(options.recipe),
                          .skip_broken = options.skip_broken,
                          .only_test = options.only_test,
                          .train_alone = options.train_alone || !options.recipe.verify.empty(),
                          .stop_requested = stop_noted}),
      flags.cache, options.recipe);
}

void print_notes(const data::Splits& data) {
  for (const std::string& note : data.notes) print_warning(note);
}

}  // namespace ringlet::app
