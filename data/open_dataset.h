// The data sets that --data can name, in one list: the command line's help, checks and completion
// read it, and so does whoever opens one.
//
// A program may open sets of its own by name as well:
//
//   std::vector<data::NamedDataset> known = data::named_datasets();
//   known.push_back({.name = "waves", .open = open_waves});
//   const data::Splits splits = data::open_dataset(name, options, known);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/picture_spec.h"

namespace ringlet::data {

struct OpenOptions {
  std::string parameter{};  ///< what stands behind a data set's name and a colon
  std::string directory{};  ///< --data-dir: where a named set's files lie; empty: look for them
  std::int64_t synthetic_train = 60000;  ///< drawn training samples
  std::int64_t synthetic_test = 10000;
  std::uint64_t synthetic_seed = 1;
  bool allow_unseen_targets = false;  ///< in a folder: see load_idx_directory()
  PictureSpec pictures{};             ///< of pictures in a folder
  bool skip_broken = false;           ///< see ImageFolderOptions
  bool only_test = false;             ///< the same
  /// A folder of identities alone will do (load_identity_folder()): who trains measures on pairs.
  bool train_alone = false;
  StopRequest stop_requested{};  ///< see DatasetInfo
};

/// Which of the options a data set needs.
enum class DataNeeds : std::uint8_t {
  nothing,
  files,  ///< in a directory that OpenOptions may name
  sizes,  ///< how many samples to draw
};

struct NamedDataset {
  std::string name;    ///< what --data takes
  std::string help{};  ///< a few words, where the name does not say enough
  /// What stands behind the name and a colon, in a word: "C". Empty: nothing does.
  std::string parameter{};
  /// What is wrong with the text behind the colon, in words; empty: nothing, as far as one sees.
  std::function<std::string(const std::string&)> fault{};
  DataNeeds needs = DataNeeds::nothing;
  std::function<Splits(const OpenOptions&)> open;
};

/// Ringlet's own. The first is the default of --data.
const std::vector<NamedDataset>& named_datasets();

/// Their names, and the colon and the word of a parameter: "synthetic-faces:C".
std::vector<std::string> dataset_names(const std::vector<NamedDataset>& known = named_datasets());

/// Null where no data set has that name; of one with a parameter something is behind the colon.
const NamedDataset* find_dataset(const std::string& name,
                                 const std::vector<NamedDataset>& known = named_datasets());

/// Whether open_dataset() has something to open: a name, or a directory or a .rec that is there.
bool is_dataset(const std::string& name, const std::vector<NamedDataset>& known = named_datasets());

/// What --data takes besides names.
inline constexpr const char* kDataFolder =
    "a folder of IDX files or of pictures (CLASS/*, or train/CLASS/*), or a .rec of pictures";

/// Whether `name` is such a folder of pictures, or a .rec of them.
bool is_picture_folder(const std::string& name);

/// Whether `name` is a folder of pictures without a part to test on, so that it is split.
bool is_split(const std::string& name);

/// Whether its pictures are made of the size that PictureSpec::image_size says, where it says one.
bool takes_image_size(const std::string& name);

/// `name` is one of `known`, a directory that holds IDX files (data/idx_dataset.h) or pictures
/// (data/image_folder.h), or a `.rec` (data/record_dataset.h). Throws DataError; for a word that is
/// none of these it names the choices.
Splits open_dataset(const std::string& name, const OpenOptions& options = {},
                    const std::vector<NamedDataset>& known = named_datasets());

}  // namespace ringlet::data
