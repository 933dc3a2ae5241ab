// The centres of the classes that embeddings are compared with (nn/layers/class_centres.h): a file
// of their own beside the model's, since whoever uses the model does not need them.
//
//   centres.safetensors   one tensor, `weight` [C, D] in f32. Its metadata have the classes' names
//                         in the order of the rows, "ringlet.classes", and what cosines were
//                         multiplied by, "ringlet.scale". "ringlet.centres", a hash of the
//                         centres, stands in the model's file as well: so it is known which belong
//                         together
//   centres/              where a rank cannot have them all: a file of each rank (row_files.h), and
//                         these metadata in its index
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "train/files/load_model.h"
#include "train/files/state.h"

namespace ringlet::train {

inline constexpr const char* kCentresFile = "centres.safetensors";
inline constexpr const char* kCentresFolder = "centres";
inline constexpr const char* kHashOfCentres = "ringlet.centres";  ///< in metadata

/// The file, or the folder of files, that `named` stands for: itself, or of a run's folder that of
/// the run; where that has not ended, or they are too large for one file, that of its last saved
/// state.
std::filesystem::path centres_file_of(const std::filesystem::path& named);
/// Those of a model's file: beside it, or, where they are too large for one file, in the state
/// beside it. Empty: there are none.
std::filesystem::path centres_beside(const std::filesystem::path& model);

/// Whether the model learns centres.
inline bool has_centres(const nn::Registry& registry) {
  return std::ranges::any_of(registry.parameters, [](const auto* p) { return p->of_loss; });
}

/// What the file says of itself; where it does not, names are numbers. Throws FileError.
struct CentresInfo {
  std::vector<std::string> names;  ///< of the rows
  double scale = 64;
};
CentresInfo read_centres_info(const std::filesystem::path& file);

/// A sum over rows, each with its number: that of all is the sum of those of any parts.
std::uint64_t hash_of_rows(const float* values, std::int64_t first, std::int64_t rows,
                           std::int64_t columns);
/// The text of "ringlet.centres"; empty where there are none.
std::string hash_of_centres(const nn::Registry& registry, const HostState& state);
std::string hash_in_words(std::uint64_t hash);

/// Reads a model and the centres that it learnt, for a run with these `classes`. A live run may
/// save anew meanwhile: then it reads once more. Throws FileError as load_model() and
/// take_centres(), and for centres that were saved with other models.
HostState load_with_centres(const std::filesystem::path& model,
                            const std::filesystem::path& centres, const nn::Registry& registry,
                            const std::vector<std::string>& classes, NonFinite nonfinite);

/// Writes them, with info.output_names and info.scale. Returns the file's sum. Throws FileError.
std::string save_centres(const std::filesystem::path& file, const nn::Registry& registry,
                         const HostState& state, const ModelInfo& info);

/// Writes the index of a folder of files of rows (row_files.h), whose hash is known. Returns its
/// sum. Throws FileError.
std::string save_centres_index(const std::filesystem::path& file, const nn::Registry& registry,
                               const std::string& hash, const ModelInfo& info);
/// Makes one file of such a folder, a piece at a time. Throws FileError.
void join_centres(const std::filesystem::path& folder, const std::filesystem::path& file);

/// Reads them into `state`, whose other values stay, and returns the file's sum. Throws FileError
/// where they are of another shape, or not finite.
std::string load_centres(const std::filesystem::path& file, const nn::Registry& registry,
                         HostState& state);

/// The same for --init-centres, where `classes` are the run's: rows go by the classes' names where
/// the file has names, and all of the run's are among them. Throws FileError as above, and for
/// other classes, with both numbers.
void take_centres(const std::filesystem::path& file, const nn::Registry& registry,
                  const std::vector<std::string>& classes, HostState& state,
                  NonFinite nonfinite = NonFinite::refused);

}  // namespace ringlet::train
