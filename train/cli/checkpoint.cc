#include "train/cli/checkpoint.h"

#include <fmt/format.h>

#include <string>

#include "train/cli/usage.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model.safetensors";

/// Whether --data can be told what the file was trained on: folders come and go.
bool can_open(const std::string& data) {
  std::error_code error;
  return data == "fashion-mnist" || data == "synthetic" || fs::is_directory(data, error);
}

[[noreturn]] void contradict(const Checkpoint& checkpoint, const std::string& flag,
                             const std::string& holds) {
  throw UsageError(fmt::format("{} contradicts {}, which {}; leave the flag out", flag,
                               checkpoint.file.string(), holds));
}

std::string in_words(std::int64_t channels, std::int64_t height, std::int64_t width,
                     std::size_t classes) {
  return fmt::format("images of {} x {} x {} in {} classes", channels, height, width, classes);
}

}  // namespace

CLI::Option* add_checkpoint_flag(CLI::App& app, fs::path& checkpoint) {
  return app
      .add_option("--checkpoint,--init", checkpoint,
                  "the model (safetensors), or the folder of a run that holds it")
      ->required()
      ->type_name("FILE|DIR")
      ->group("Files");
}

Checkpoint open_checkpoint(const fs::path& named) {
  std::error_code error;
  fs::path file = named;
  if (fs::is_directory(named, error)) {
    file = named / kModelFile;
    const fs::path unfinished = named / "state" / kModelFile;
    if (!fs::exists(file, error) && fs::exists(unfinished, error)) file = unfinished;
  }
  return {file, read_model_info(file)};
}

RawFlags with_checkpoint(const RawFlags& flags, const Checkpoint& checkpoint) {
  if (!checkpoint.info) return flags;
  const ModelInfo& info = *checkpoint.info;
  RawFlags changed = flags;
  if (!flags.recipe.contains("model")) {
    changed.recipe["model"] = changed.model = info.model;
  } else if (flags.model != info.model) {
    contradict(checkpoint, "--model " + flags.model, "holds a " + info.model);
  }
  const bool as_it_is = info.mean == 0 && info.deviation == 1;
  if (flags.recipe.value("normalize", !as_it_is) == as_it_is) {
    contradict(checkpoint, as_it_is ? "no-normalize = false" : "--no-normalize",
               as_it_is ? "was trained on pixels as they are" : "was trained on normalised pixels");
  }
  if (!flags.recipe.contains("data")) {
    if (!can_open(info.data)) {
      throw UsageError(
          fmt::format("{} was trained on '{}', which is not here; name the data with --data",
                      checkpoint.file.string(), info.data));
    }
    changed.recipe["data"] = info.data;
  }
  return changed;
}

void require_fits(const Checkpoint& checkpoint, const data::Dataset& dataset) {
  if (!checkpoint.info) return;
  const ModelInfo& info = *checkpoint.info;
  const auto wanted = in_words(info.channels, info.height, info.width, info.classes.size());
  const auto found =
      in_words(dataset.channels(), dataset.height(), dataset.width(), dataset.class_names().size());
  if (wanted == found) return;
  throw UsageError(fmt::format("{} is for {}, but {} has {}", checkpoint.file.string(), wanted,
                               dataset.name(), found));
}

}  // namespace ringlet::train
