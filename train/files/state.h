// A run's files on disk: the model's weights, and the state from which the run can go on.
//
//   OUT/centres.safetensors the centres of a loss with a margin (centres.h)
//   OUT/model.safetensors   weights and buffers alone, in PyTorch's names and layouts
//   OUT/best/               the model, and the centres, of the best verification
//   OUT/state.before/       the state before this one, of the same run
//   OUT/state/              replaced as one, so that there is always a whole one:
//     model.safetensors       the same for the moment of saving
//     centres.safetensors     the same; or centres/, a file of each rank (row_files.h), with what
//                             the optimiser keeps of these rows
//     optimizer.safetensors   the optimiser's state, cut into the parameters: of one arena (SGD's
//                             velocity) under their names, of several under "ARENA/PARAMETER";
//                             one of a parameter's rows has a number for each row. With --ema the
//                             model is the average, and what training goes on with lies here, as
//                             the arenas "trained" and "trained_buffers" (weight_average.h)
//     state.json              position in the data, recipe, versions, a sum of each file
//
// OUT/model.best.safetensors is the model of the best test of an epoch (best_spec.h).
//
// A state knows no number of ranks: the position is a number of optimiser steps, and everything
// random is a function of (seed, epoch, position).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/atomic_file.h"
#include "nn/parameters.h"
#include "train/files/model_info.h"
#include "train/files/state_json.h"
#include "train/optimizers/optimizer.h"
#include "train/recipe/options.h"

namespace ringlet::train {

/// A StateArena in host memory: a tensor for each of the registry's parameters, or of its buffers,
/// in their order, or one for the parameter whose rows it counts.
struct HostArena : ArenaSpec {
  HostArena(const ArenaSpec& spec, std::vector<std::vector<float>> the_tensors)
      : ArenaSpec(spec), tensors(std::move(the_tensors)) {}
  std::vector<std::vector<float>> tensors;
};

/// Rows that are not in memory, but in the files of a folder (row_files.h): those of the loss.
struct RowsApart {
  std::string hash;  ///< hash_of_centres() of them
  FileSums sums;     ///< of the files of rows, under "centres/0001-of-0004.safetensors"
};

/// A model's and optimiser's numbers in host memory, in the order of the registry.
struct HostState {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> buffers;
  std::vector<std::int64_t> counters;
  std::vector<HostArena> optimizer;            ///< empty: none (weights alone)
  std::optional<LossScaleState> loss_scale{};  ///< under f16
  /// Of the loss's parameters there is nothing above.
  std::optional<RowsApart> rows_apart{};
};

inline constexpr const char* kStateBefore = "state.before";              ///< in OUT
inline constexpr const char* kBestFolder = "best";                       ///< in OUT
inline constexpr const char* kModelFile = "model.safetensors";           ///< in OUT and in a state
inline constexpr const char* kBestModelFile = "model.best.safetensors";  ///< in OUT
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

/// Removes the state, the models and the centres that a former run has left in its folder. Throws
/// FileError.
void remove_former_run(const std::filesystem::path& out);
/// Removes the model and the centres of a run's end, which is none any more. Throws FileError.
void remove_end(const std::filesystem::path& out);

/// A state that was read from a folder.
struct SavedState : StateJson {
  std::filesystem::path folder;
};

/// Copies from the device. `optimizer`: the optimiser's state; may be empty. Of rows that are cut
/// over ranks, those that this one has.
/// Without `rows_of_loss`, nothing of the loss's own parameters.
HostState download(Device& device, const nn::Parameters& parameters,
                   std::span<const StateArena> optimizer, bool rows_of_loss = true);
/// Copies to the device what `state` has. Its arenas are those of `optimizer`, in the same order.
/// Of rows that are cut over ranks the state has all, and those that this rank has are copied.
void upload(Device& device, const HostState& state, const nn::Parameters& parameters,
            std::span<const StateArena> optimizer);

/// Writes weights and buffers, and what the model is. Returns the file's sum. Throws FileError.
std::string save_model(const std::filesystem::path& file, const nn::Registry& registry,
                       const HostState& state, const ModelInfo& info);
/// What becomes of the state that a new one replaces.
enum class FormerState : std::uint8_t {
  removed,  ///< it may be another run's; so is what lies in OUT/state.before
  kept      ///< as OUT/state.before
};
/// Writes OUT/state as one folder. Throws FileError; the former state then stays.
void save_state(const std::filesystem::path& out, const nn::Registry& registry,
                const HostState& state, const ModelInfo& info, const Recipe& recipe,
                const Progress& progress, std::uint64_t data_hash,
                FormerState former = FormerState::removed);
/// The same where `folder`, of OUT/state, may have files of rows already.
void save_state(AtomicDirectory& folder, const std::filesystem::path& out,
                const nn::Registry& registry, const HostState& state, const ModelInfo& info,
                const Recipe& recipe, const Progress& progress, std::uint64_t data_hash,
                FormerState former);
/// Writes anew how far the run has come whose state is OUT/state: the epoch was tested, and its
/// numbers are where they are kept. Throws FileError.
void save_progress(const std::filesystem::path& out, const Progress& progress);
/// Reads recipe and progress of OUT (or of OUT/state itself), and changes nothing there. Throws
/// FileError.
SavedState read_state(const std::filesystem::path& out);
/// Throws FileError where a file of the state cannot be read to its end, holds a number that is not
/// finite, or is not the one that was saved (of a state without sums that is not known).
void require_whole(const SavedState& saved);
/// Whether the state has rows in files of their own: in saved.folder / kCentresFolder.
bool has_rows_apart(const SavedState& saved);
/// What becomes of such rows when a state is read.
enum class ApartRows : std::uint8_t {
  read,     ///< whole
  left_out  ///< each rank reads its own
};
/// Reads the numbers of a state. `arenas`: the optimiser's. Throws FileError as above.
HostState load_state(const SavedState& saved, const nn::Registry& registry,
                     const std::vector<ArenaSpec>& arenas, ApartRows rows = ApartRows::read);
/// The tensors that files of rows have of a parameter: of the optimiser's arenas, beside the
/// weight. Those of one number a row are in `one_number`.
struct RowTensors {
  std::vector<std::string> whole, one_number;
};
RowTensors row_tensors_of(const std::vector<ArenaSpec>& arenas, int parameter);

}  // namespace ringlet::train
