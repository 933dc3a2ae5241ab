// A model's weights out of a file: Ringlet's own, and those of PyTorch's world, as safetensors or
// as torch.save() writes them (torch_archive.h).
//
//   names     what stands before all of a model's names is passed over: "module." of DataParallel,
//             "_orig_mod." of torch.compile, "model." and the like of a module that holds it
//   types     F16 and BF16 are widened, which loses nothing; F64 and integers are rounded to f32
//   counters  num_batches_tracked may be missing, and is then 0, as in PyTorch; or of another type
//   numbers   are finite, unless somebody wants to look at those that are not
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nn/parameters.h"
#include "train/files/safetensors.h"
#include "train/files/state.h"

namespace ringlet::train {

/// What is done with a model's last layer where the file has one of another size.
enum class Head : std::uint8_t {
  as_in_file,  ///< it must fit; the error names the head and --replace-head
  replaced     ///< its values and buffers are left empty, which upload() passes over, as the
               ///< loss's values always are
};

/// What is done with weights that are NaN or infinite.
enum class NonFinite : std::uint8_t { refused, taken };

/// The file that `named` stands for. A folder stands for the model of the run in it; where that run
/// has not ended, for the model of its last saved state.
std::filesystem::path model_file_of(const std::filesystem::path& named);

/// Reads weights and buffers, whatever the file says of itself. Throws one FileError that lists
/// everything that does not fit, or that names the first number that is not finite; also for a file
/// of a state that is not the one that was saved.
HostState load_model(const std::filesystem::path& file, const nn::Registry& registry,
                     Head head = Head::as_in_file, NonFinite nonfinite = NonFinite::refused);

/// Throws FileError naming the first number of the file that is not finite, and where the file is
/// not the one in its state's `sums`.
void require_finite_numbers(const std::filesystem::path& file, const FileSums& sums = {});

/// "FILE: its F64 numbers are rounded to f32"; empty where nothing is lost. Throws FileError.
std::string rounding_of(const std::filesystem::path& file);

/// The number of outputs of the model's last layer in the file; nothing where it has none of its
/// kind. Throws FileError.
std::optional<std::int64_t> classes_in(const std::filesystem::path& file,
                                       const nn::Registry& registry);

/// The channels of the images that the model's first layer, a convolution, takes in the file;
/// nothing where that is none, or not there. Throws FileError.
std::optional<std::int64_t> channels_in(const std::filesystem::path& file,
                                        const nn::Registry& registry);

/// "FILE: its tensors lie under 'state_dict', their names begin with 'module.', which is passed
/// over"; empty where nothing is. Throws FileError.
std::string passed_over_in(const std::filesystem::path& file, const nn::Registry& registry);

/// What a model takes of a file, by the file's header alone.
struct TakenWeights {
  std::int64_t tensors = 0;                    ///< those of the model's that the file has alike
  std::int64_t wanted = 0;                     ///< those that the model has, counters left out
  std::string last{};                          ///< the model's last layer: "fc"
  std::optional<std::int64_t> last_in_file{};  ///< that layer's outputs there
  std::int64_t last_here = 0;                  ///< and here
  bool rest_fits = true;                       ///< all but that layer is alike in the file
  /// Whether nothing but the last layer differs, and that in the number of its outputs.
  bool fits() const;
};
/// Throws FileError.
TakenWeights taken_from(const std::filesystem::path& file, const nn::Registry& registry);

/// "FILE: 120 of the model's 122 tensors; its last layer, fc, starts anew, ..."
std::string in_words(const TakenWeights& taken, const std::filesystem::path& file);

/// What stands in the file before the names of a model with these parameters: "module.".
std::string prefix_of(const SafetensorsFile& file, const nn::Registry& registry);

/// The values of a tensor of floats of any width. Throws FileError as `nonfinite` asks.
std::vector<float> floats_of(const SafetensorsFile& file, const std::string& name,
                             NonFinite nonfinite = NonFinite::refused);

}  // namespace ringlet::train
