#include "app/cli/fit_pictures.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "app/cli/signals.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "comm/shared_text.h"
#include "data/open_dataset.h"
#include "data/picture_sides.h"
#include "data/picture_spec.h"
#include "train/files/load_model.h"
#include "train/files/published_weights.h"
#include "train/recipe/picture_fit.h"
#include "train/recipe/recipe_options.h"
#include "train/telemetry/console.h"

namespace ringlet::app {

namespace {

/// What follows from the pictures; what does not is empty, or 0.
struct Fit {
  double split = 0;
  std::int64_t image_size = 0;
  std::int64_t pictures = 0;  // to train on, of a run whose recipe follows from them
  std::string model{}, told{};
};

/// What the weights that a run begins with say of themselves; nothing where they say nothing, or
/// where they cannot be read, which is told when they are loaded.
std::optional<train::ModelInfo> info_of(const std::filesystem::path& init) {
  try {
    return train::read_model_info(train::model_file_of(init));
  } catch (const FileError&) {
    return {};
  }
}

std::string in_words(const data::PictureSides& sides) {
  return sides.smallest == sides.largest
             ? fmt::format("their shorter sides have {} pixels", sides.median)
             : fmt::format("their shorter sides have {} to {} pixels, {} in the middle",
                           sides.smallest, sides.largest, sides.median);
}

/// What size and model follow from: the weights that a run begins with, else the pictures.
std::string reason_of(const std::filesystem::path& init, bool known, const Fit& fit,
                      const data::PictureSides& sides) {
  if (known) return "as the weights in " + on_one_line(init.string()) + " have it";
  if (!init.empty() && fit.image_size == data::kUsualImageSize) {
    return "which weights of ImageNet have seen; " + in_words(sides);
  }
  return in_words(sides);
}

/// "resnet20 (--model) on 32 x 32 pixels (--image-size): ..."
void tell(const RawFlags& flags, const std::string& reason, Fit& fit) {
  if (fit.model.empty() && fit.image_size == 0) return;
  const std::int64_t size =
      fit.image_size > 0 ? fit.image_size : given_or<std::int64_t>(flags, "image_size", 0);
  fit.told =
      fmt::format("{}{} on {} x {} pixels{}: {}", fit.model.empty() ? flags.model : fit.model,
                  fit.model.empty() ? "" : " (--model)", size, size,
                  fit.image_size > 0 ? " (--image-size)" : "", reason);
}

Fit fit_of(const RawFlags& flags) {
  const std::string data = given_or(flags, "data", train::Recipe().data);
  const bool of_pairs = !given_or<std::string>(flags, "verify", "").empty();
  std::error_code error;
  const bool is_folder = data::find_dataset(data) == nullptr && data::is_picture_folder(data) &&
                         std::filesystem::is_directory(data, error);
  if (of_pairs || !is_folder) return {};
  Fit fit;
  if (!flags.recipe.contains("split") && data::is_split(data)) fit.split = data::kUsualSplit;
  const std::int64_t given = given_or<std::int64_t>(flags, "image_size", 0);
  const std::filesystem::path& init = flags.options.files.init;
  const double share = data::is_split(data) ? given_or(flags, "split", data::kUsualSplit) : 0;
  const auto to_train_on = [share](std::int64_t all) {
    return std::llround(static_cast<double>(all) * (1 - share));
  };
  if (init.empty() || flags.options.files.fine_tune) {
    fit.pictures = to_train_on(data::pictures_to_train_on(data));
  }
  if (given > 0 && flags.recipe.contains("model")) return fit;
  const data::PictureSides sides = data::measure_sides(data, stop_noted);
  if (sides.known == 0) return fit;  // that is told by who reads them
  const std::optional<train::ModelInfo> begun = init.empty() ? std::nullopt : info_of(init);
  const bool known = begun && begun->photographs;
  if (given == 0) {
    fit.image_size =
        known ? begun->height
        : init.empty()
            ? train::fit_to_pictures(sides.median, to_train_on(sides.pictures)).image_size
            : train::size_for_weights(sides.median);
  }
  if (!flags.recipe.contains("model")) {
    fit.model = known ? begun->model
                : train::names_weights(init)
                    ? init.string()
                    : train::model_for(static_cast<int>(given > 0 ? given : fit.image_size));
  }
  tell(flags, reason_of(init, known, fit, sides), fit);
  return fit;
}

/// "--epochs 50 --augment crop-flip: for 800 pictures", or "to fine-tune on 800 pictures". How many
/// a split leaves exactly is known when all have been compared.
std::string in_words(const train::GivenOptions& usual, const Fit& fit, bool is_split,
                     const char* what_for) {
  return fmt::format("{}: {} {}{} pictures", train::in_words(usual), what_for,
                     is_split ? "about " : "", train::with_commas(fit.pictures));
}

FittedFlags with(const RawFlags& flags, const Fit& fit) {
  FittedFlags fitted{flags};
  if (!fit.told.empty()) fitted.told.push_back(fit.told);
  train::GivenOptions& recipe = fitted.flags.recipe;
  if (fit.split > 0) recipe["split"] = fit.split;
  if (fit.image_size > 0) recipe["image_size"] = fit.image_size;
  if (!fit.model.empty()) recipe["model"] = fitted.flags.model = fit.model;
  const bool tunes = flags.options.files.fine_tune;
  train::GivenOptions usual =
      tunes ? train::usual_for_fine_tuning(recipe, fit.pictures)
            : train::usual_for_pictures(fitted.flags.model, recipe, fit.pictures);
  if (!usual.empty()) {
    fitted.told.push_back(
        in_words(usual, fit, recipe.contains("split"), tunes ? "to fine-tune on" : "for"));
  }
  recipe.merge(usual);
  for (const auto& [key, value] : recipe) {
    if (flags.recipe.contains(key)) continue;
    fitted.chosen.push_back(train::recipe_options().at(key).flag_name().substr(2));
  }
  return fitted;
}

}  // namespace

FittedFlags fit_to_pictures(const RawFlags& flags) { return with(flags, fit_of(flags)); }

FittedFlags fit_to_pictures(const RawFlags& flags, comm::Group& group) {
  const auto look = [&] {
    const Fit fit = fit_of(flags);
    return nlohmann::json{fit.split, fit.image_size, fit.pictures, fit.model, fit.told}.dump();
  };
  const nlohmann::json fit = parse_json(comm::from_first(
      group, "the folder of pictures", flags.options.execution.comm_timeout, look));
  return with(flags, {fit.at(0), fit.at(1), fit.at(2), fit.at(3), fit.at(4)});
}

}  // namespace ringlet::app
