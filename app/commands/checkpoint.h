// --checkpoint: the file that it names, and what that file says of its model.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "app/cli/flags.h"
#include "comm/core/group.h"
#include "comm/processes/plan_check.h"
#include "data/dataset.h"
#include "train/files/load_model.h"
#include "train/files/model_info.h"

namespace ringlet::app {

/// A model's file as the user named it.
struct Checkpoint {
  std::filesystem::path file;
  std::optional<train::ModelInfo>
      info{};  ///< nothing for a file that is not Ringlet's, as PyTorch's
  /// --data-dir of the run that it belongs to; empty if not known. Another machine may not have it.
  std::string data_dir{};
  /// The classes' centres beside a model of embeddings, and what these say of themselves; empty
  /// where there are none. The names are info->output_names as well.
  std::filesystem::path centres{};
  double scale = 0;
  /// What was in that run's test data (Dataset::contents()); empty if not known.
  std::string test_contents{};
};

/// Whether the model's answers are embeddings, and no logits of classes.
inline bool gives_embeddings(const Checkpoint& checkpoint) {
  return checkpoint.info && checkpoint.info->embedding > 0;
}

/// Adds --checkpoint.
CLI::Option* add_checkpoint_flag(CLI::App& app, std::filesystem::path& checkpoint);

/// Adds --no-normalize. Its help, and that of --model, which must be there, say that the file
/// counts first.
void add_no_normalize_flag(CLI::App& app, RawFlags& flags);

/// Adds --allow-nonfinite, and says what it means.
void add_allow_nonfinite_flag(CLI::App& app, bool& allow);
train::NonFinite nonfinite_of(bool allow);

/// Finds the file (model_file_of()) and reads what it says of itself. Warns of numbers that will be
/// rounded. Throws FileError.
/// `with_centres`: those beside a model of embeddings, too.
Checkpoint open_checkpoint(const std::filesystem::path& named, bool with_centres = false);
/// The same in all processes of a group, of which the first alone reads the file.
Checkpoint open_checkpoint(const std::filesystem::path& named, comm::Group& group,
                           double comm_timeout, bool with_centres = false);
/// Warns where the numbers of this file will be rounded. Throws FileError.
void warn_of_rounding(const std::filesystem::path& weights);
/// What the file says of itself.
Checkpoint read_checkpoint(const std::filesystem::path& file);

/// A checkpoint as one process sends it to the others, and as they receive it. Entries that a
/// Checkpoint does not have are ignored.
comm::Plan to_plan(const Checkpoint& checkpoint);
Checkpoint checkpoint_of(const comm::Plan& plan);

/// Takes the model, or the data that it was trained on, from the file where no flag names them.
/// Throws UsageError where a flag contradicts the file, or the data are not on this machine.
RawFlags with_model_of(const RawFlags& flags, const Checkpoint& checkpoint);
RawFlags with_data_of(const RawFlags& flags, const Checkpoint& checkpoint);

/// Takes what else says which data they are from the file's run, where no flag does: how many
/// images were drawn, and --data-dir, if that folder is on this machine. `checkpoint` has an info.
RawFlags with_data_flags_of(const RawFlags& flags, const Checkpoint& checkpoint);

/// Opens the data of `options`. A folder of pictures without a part to test on is split as the
/// model's run has split it, where it is that run's, also under another name. Of another folder,
/// and where the file does not say what it was trained on, all pictures are to test on. Throws as
/// open_data().
data::Splits open_data_of(const Checkpoint& checkpoint, const RawFlags& flags,
                          train::TrainOptions options);

/// The folder of the run whose state, or model, lies in `folder`.
std::filesystem::path run_of(const std::filesystem::path& folder);

/// For a file that does not say what it holds: the recipe's model, with the images, classes and
/// pixel statistics of `train`. Without `train`, images as the network was published for, where the
/// file's first layer takes as many channels, else Fashion-MNIST's, and as many classes as the file
/// has, named by number. The statistics of colour pictures are those that are usual for the
/// network.
train::ModelInfo assume_info(const Checkpoint& checkpoint, const train::Recipe& recipe,
                             const data::Dataset* train);

/// "FILE: lenet, trained on fashion-mnist", or what is assumed. `assumed`: `info` is not from the
/// file itself.
std::string model_in_words(const std::filesystem::path& file, const train::ModelInfo& info,
                           bool assumed);

}  // namespace ringlet::app
