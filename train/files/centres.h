// The centres of the classes that embeddings are compared with (nn/layers/class_centres.h): a file
// of their own beside the model's, since whoever uses the model does not need them.
//
//   centres.safetensors   one tensor, `weight` [C, D] in f32. Its metadata have the classes' names
//                         in the order of the rows, "ringlet.classes", and what cosines were
//                         multiplied by, "ringlet.scale". "ringlet.centres", a hash of the
//                         centres, stands in the model's file as well: so it is known which belong
//                         together
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "train/files/load_model.h"
#include "train/files/state.h"

namespace ringlet::train {

inline constexpr const char* kCentresFile = "centres.safetensors";
inline constexpr const char* kHashOfCentres = "ringlet.centres";  ///< in metadata

/// The file that `named` stands for: itself, or of a folder that of the run in it; where that run
/// has not ended, that of its last saved state.
std::filesystem::path centres_file_of(const std::filesystem::path& named);

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

/// The text of "ringlet.centres"; empty where there are none.
std::string hash_of_centres(const nn::Registry& registry, const HostState& state);

/// Reads a model and the centres that it learnt, for a run with these `classes`. A live run may
/// save anew meanwhile: then it reads once more. Throws FileError as load_model() and
/// take_centres(), and for centres that were saved with other models.
HostState load_with_centres(const std::filesystem::path& model,
                            const std::filesystem::path& centres, const nn::Registry& registry,
                            const std::vector<std::string>& classes, NonFinite nonfinite);

/// Writes them, with info.output_names and info.scale. Returns the file's sum. Throws FileError.
std::string save_centres(const std::filesystem::path& file, const nn::Registry& registry,
                         const HostState& state, const ModelInfo& info);

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
