// state.json of a state folder: how far a run has come, by which recipe, on which data, and the
// sums of the state's files (state.h).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/all_reduce/strategy_table.h"
#include "train/files/phase_seconds.h"
#include "train/recipe/options.h"

namespace ringlet::train {

/// What an epoch took whose last step is done.
struct EndedEpoch {
  double seconds = 0;
  std::int64_t samples = 0;  ///< that were learnt in them
  PhaseSeconds phases;       ///< of rank 0's replica
  /// With that of a later part of the epoch.
  EndedEpoch operator+(const EndedEpoch& other) const {
    return {seconds + other.seconds, samples + other.samples, phases + other.phases};
  }
  bool operator==(const EndedEpoch&) const = default;
};

/// The best that a run has reached on a set of pairs.
struct BestVerification {
  std::string set;  ///< its name
  double accuracy = 0;
  std::int64_t step = 0;  ///< after which
  bool operator==(const BestVerification&) const = default;
};

/// The best test of a run's epochs so far.
struct BestTest {
  std::string by;          ///< "accuracy" or "loss"
  double value = 0;        ///< of it
  std::int64_t step = 0;   ///< after which
  std::int64_t worse = 0;  ///< epochs since then
  bool operator==(const BestTest&) const = default;
};

/// Up to `step` a run was planned to have so many epochs; then --resume took others.
struct FormerLength {
  std::int64_t step = 0;
  std::int64_t epochs = 0;
  bool operator==(const FormerLength&) const = default;
};

/// How far a run has come. Sums are those of the epoch that is under way.
struct Progress {
  std::int64_t step = 0;  ///< optimiser steps done
  double epoch_loss = 0;  ///< sum of the samples' losses
  std::int64_t epoch_samples = 0;
  std::array<double, 4> epoch_told{};  ///< sums of what a task tells (TaskPass::told)
  /// There from an epoch's last step to the end of its evaluation, with which a run that was ended
  /// in between begins.
  std::optional<EndedEpoch> untested{};
  /// What the steps of the epoch that is under way took, where a run was ended within it.
  std::optional<EndedEpoch> earlier{};
  /// By which `auto` picks strategies, of three replicas and more, which they add in other orders.
  comm::StrategyTable strategies{};
  /// The same as `untested` of a verification that is due after this step.
  bool unverified = false;
  std::vector<BestVerification> best{};  ///< of each set of pairs, in the order of --verify
  std::optional<BestTest> best_test{};   ///< whose model is OUT/model.best.safetensors
  std::vector<FormerLength> lengths{};   ///< where --epochs has changed it
  bool stopped = false;                  ///< --patience has ended the run before its last step
};

/// The scale of the loss under f16, and what it depends on (kernels/loss_scale.h).
struct LossScaleState {
  double scale = 65536;  ///< a power of two
  std::int64_t good_steps = 0;
  std::int64_t skips_in_row = 0;
  std::int64_t skips = 0;  ///< of the run's steps; they moved neither schedule nor optimiser
  bool operator==(const LossScaleState&) const = default;
};

/// The sums of a state's files (byte_sum.h), by name.
using FileSums = std::map<std::string, std::string>;

struct StateJson {
  Recipe recipe;
  Progress progress;
  std::uint64_t data_hash = 0;
  std::optional<LossScaleState> loss_scale{};  ///< of f16 alone
  FileSums sums{};                             ///< of the files beside state.json; older ones: none
};

/// Where `state` has sums, one of the text itself is added to them.
std::string format_state_json(const StateJson& state);

/// Throws FileError that starts with `source`: no JSON, another version's, a field that is missing,
/// of the wrong type or beyond any run, or another text than was written.
StateJson parse_state_json(const std::string& source, std::string_view text);

/// The same of a file, which has to be a regular one of a size that such files have.
StateJson read_state_json(const std::filesystem::path& file);

/// The sums in the state.json beside `file`; none where no such file can be read.
FileSums sums_beside(const std::filesystem::path& file);

/// Throws FileError where `file`, whose sum is `sum`, is not the one that was saved with `sums`.
void require_sum(const FileSums& sums, const std::filesystem::path& file, const std::string& sum);

}  // namespace ringlet::train
