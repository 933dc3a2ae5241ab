// ModelInfo: what a model file says of itself, so that whoever has the file needs nothing else.
//
// It lies in the `__metadata__` of model.safetensors, which is text by text, beside PyTorch's own
// "format": "pt". PyTorch and other readers pass over what they do not know.
//
//   ringlet.task        "prices"            what it is trained for (train/task/task.h); absent:
//                                           classification, or a file that does not say. Of any
//                                           other task none of the following is there
//   ringlet.version     "0.1.0"             who wrote it
//   ringlet.model       "lenet"             the network, by the name of --model
//   ringlet.data        "fashion-mnist"     what it was trained on, as --data named it
//   ringlet.samples     "[60000,10000]"     how many training and test images there were, if known
//   ringlet.input       "[1,28,28]"         channels, height and width of an image
//   ringlet.classes     "[\"Bag\",...]"     their names, in the order of the logits
//   ringlet.embedding   "512"               instead of these, of a model whose output is an
//                                           embedding: its numbers
//   ringlet.mean        "0.28604063"        subtracted from pixel / 255 ...
//   ringlet.deviation   "0.35302424"        ... and what is left is divided by this; both are
//                                           "0.485,0.456,0.406" where each channel has its own
//   ringlet.background  "0.012"             mean of pixel / 255 along the images' borders, if known
//   ringlet.broken      "left out"          pictures that cannot be read were left out of the data
//                                           (--skip-broken); absent: there were to be none
//   ringlet.split       "0.2"               the share of a folder's pictures that was tested on,
//                                           not trained on (--split); absent: none were split
//   ringlet.photographs "upright"           it sees the middle of a photograph, which is turned as
//                                           Exif says; "as stored": which is not; absent: it sees
//                                           images as data/images/prepare_image.h makes them
//
// Numbers are the shortest decimals that read back as the same float. Nothing depends on where or
// on how many replicas the model was trained, so that exact mode's files stay equal byte for byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/per_channel.h"
#include "nn/models/model.h"

namespace ringlet::train {

struct ModelInfo {
  std::string task{};  ///< by its name; empty: classification, too
  std::string version{};
  std::string model{};
  std::string data{};
  std::int64_t train_samples = 0;  ///< 0: not known, as in files of earlier versions
  std::int64_t test_samples = 0;   ///< the same
  int channels = 0;
  int height = 0;
  int width = 0;
  std::vector<std::string> output_names{};  ///< of a file of embeddings none
  int embedding = 0;                        ///< numbers of one; 0: the outputs are logits
  double scale = 0;                         ///< of cosines, in the centres' file (centres.h)
  data::PerChannel mean = 0;
  data::PerChannel deviation = 1;
  std::optional<float> background{};
  bool photographs = false;  ///< see data::DatasetInfo
  bool exif = true;          ///< of photographs
  double split = 0;          ///< see data::PictureSpec; 0: the data had a part to test on
  bool skip_broken = false;  ///< what could not be read of the data was left out

  bool operator==(const ModelInfo&) const = default;
  /// What the model is made for.
  nn::ModelInput input() const;
};

using Metadata = std::map<std::string, std::string>;

/// "format": "pt", the task, where it is another than classification, and where there is a model's
/// name all else above.
Metadata to_metadata(const ModelInfo& info);

/// Reads them back; nothing where there is no "ringlet.model": the file is not one of Ringlet's.
/// Throws FileError naming `file` and the text that is missing or is not as above.
std::optional<ModelInfo> parse_model_info(const std::filesystem::path& file,
                                          const Metadata& metadata);

/// Throws FileError where the file names another task than `task`.
void require_task(const std::filesystem::path& file, const std::string& task);

/// Reads the file's metadata. Throws as above, and as SafetensorsFile.
std::optional<ModelInfo> read_model_info(const std::filesystem::path& file);

}  // namespace ringlet::train
