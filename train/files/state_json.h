// state.json of a state folder: how far a run has come, by which recipe, on which data (state.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "train/options.h"

namespace ringlet::train {

/// How far a run has come. Sums are those of the epoch that is under way.
struct Progress {
  std::int64_t step = 0;  ///< optimiser steps done
  double epoch_loss = 0;  ///< sum of the samples' losses
  std::int64_t epoch_samples = 0;
};

struct StateJson {
  Recipe recipe;
  Progress progress;
  std::uint64_t data_hash = 0;
};

std::string format_state_json(const StateJson& state);

/// Throws FileError that starts with `source`: no JSON, another version's, a field that is missing,
/// of the wrong type or beyond any run.
StateJson parse_state_json(const std::string& source, std::string_view text);

/// The same of a file, which has to be a regular one of a size that such files have.
StateJson read_state_json(const std::filesystem::path& file);

}  // namespace ringlet::train
