// --checkpoint: the file that it names, and what that file says of its model.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "data/dataset.h"
#include "train/cli/flags.h"
#include "train/model_info.h"

namespace ringlet::train {

/// A model's file as the user named it.
struct Checkpoint {
  std::filesystem::path file;
  std::optional<ModelInfo> info{};  ///< nothing for a file that is not Ringlet's, as PyTorch's
};

/// Adds --checkpoint.
CLI::Option* add_checkpoint_flag(CLI::App& app, std::filesystem::path& checkpoint);

/// Finds and reads it: a folder stands for the model of the run in it, or, where that has not come
/// to its end, of its last saved state. Throws FileError.
Checkpoint open_checkpoint(const std::filesystem::path& named);

/// Takes model and data from the file where the flags do not say them. Throws UsageError where the
/// flags contradict the file.
RawFlags with_checkpoint(const RawFlags& flags, const Checkpoint& checkpoint);

/// Throws UsageError unless the images and classes of `dataset` are those that the model is for.
void require_fits(const Checkpoint& checkpoint, const data::Dataset& dataset);

}  // namespace ringlet::train
