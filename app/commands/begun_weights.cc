#include "app/commands/begun_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/cli/error_exit.h"
#include "app/cli/standard_output.h"
#include "base/files/file_error.h"
#include "base/one_line.h"
#include "nn/parameters.h"
#include "train/files/load_model.h"
#include "train/files/published_weights.h"
#include "train/recipe/models.h"

namespace ringlet::app {

namespace fs = std::filesystem;

namespace {

/// Throws FileError for weights that say of which other model they are, and do not fit this one.
void require_model(const fs::path& file, const std::string& model,
                   const train::TakenWeights& taken) {
  const std::optional<train::ModelInfo> info = train::read_model_info(file);
  if (taken.fits() || !info || info->model == model) return;
  throw FileError(fmt::format(
      "{} holds weights of {}, and this run trains {}; take --model {}, or weights of {}",
      file.string(), info->model, model, info->model, model));
}

/// That a last layer is taken though it was for as many other classes, or for embeddings of as many
/// numbers.
void print_other_classes(const fs::path& file, const train::TakenWeights& taken,
                         const train::RunSetup& setup) {
  const std::optional<train::ModelInfo> info = train::read_model_info(file);
  if (taken.last_in_file != taken.last_here || !info) return;
  const bool gave_embeddings = info->embedding > 0;
  if (gave_embeddings != setup.options.recipe.has_margin()) {
    fmt::print("init      it gave {}, and the last layer begins as it was for them\n",
               gave_embeddings ? "embeddings, and no classes" : "classes, and no embeddings");
    return;
  }
  if (info->output_names.empty()) return;
  const data::Dataset& data = *setup.data.train;
  const auto [there, here] = std::mismatch(info->output_names.begin(), info->output_names.end(),
                                           data.target_names().begin(), data.target_names().end());
  if (there == info->output_names.end() || here == data.target_names().end()) return;
  fmt::print(
      "init      its classes are others ({} where here is {}), and the last layer begins with "
      "them\n",
      on_one_line(*there), on_one_line(*here));
}

}  // namespace

void find_named_weights(fs::path& init) {
  const fs::path found = train::find_weights(init);
  if (found == init) return;
  fmt::print("init      {}: {}\n", init.string(), on_one_line(found.string()));
  init = found;
}

void print_init(const RawFlags& flags, const train::RunSetup& setup) {
  const train::TrainOptions& options = setup.options;
  const auto model = train::make_model(options.recipe.model, setup.replica.input);
  const nn::Registry registry = nn::register_model(*model);
  const fs::path file = train::model_file_of(options.files.init);
  const train::TakenWeights taken = train::taken_from(file, registry);
  require_model(file, options.recipe.model, taken);
  const bool has_other_head = taken.last_in_file != taken.last_here;
  if (!taken.fits() || (has_other_head && !options.files.replace_head)) {
    return;  // whoever loads them says what is wrong
  }
  fmt::print("init      {}\n", on_one_line(in_words(taken, file)));
  print_if_possible([&] { print_other_classes(file, taken, setup); });
  const std::string passed = train::passed_over_in(file, registry);
  if (!passed.empty()) fmt::print("init      {}\n", on_one_line(passed));
  if (options.files.fine_tune || flags.recipe.contains("lr")) return;
  fmt::print("init      with the rate of a start from nothing; --fine-tune takes a tenth of it\n");
}

void warn_of_frozen_chance(const train::TrainOptions& options) {
  if (options.recipe.freeze != "all-but-head" || !options.files.init.empty()) return;
  print_warning(
      "--freeze all-but-head without --init leaves all but the last layer as it was drawn at "
      "random; --init FILE gives it weights that are worth keeping");
}

}  // namespace ringlet::app
