// A trained model as ONNX, for other programs' run times.
//
//   input   image   float [N, C, H, W], any N; pixels from 0 to 255 as they are in the file
//   output  logits  float [N, K]
//
// The first two nodes divide by 255 and normalise as in training, so that nobody needs to know how;
// the others are the operations that a dry run of the model recorded (onnx_graph.h), their weights
// under PyTorch's names. Dropout, which does nothing outside training, is left out. What the model
// is stands in the doc_string, and in metadata_props as in model.safetensors (model_info.h).
#pragma once

#include <filesystem>
#include <string>

#include "train/files/load_model.h"
#include "train/files/model_info.h"
#include "train/recipe/options.h"

namespace ringlet::train {

/// Operator set 13 (ONNX 1.8, of 2020): what run times of today read, and Debian 12's onnx.
inline constexpr int kOnnxOpset = 13;

/// The ONNX file's bytes for the model `info` with the weights in `weights`. `make`: makes a model
/// of one's own, instead of that named info.model. Throws FileError as load_model(), and
/// ContractError for an operation that ONNX has not.
std::string to_onnx(const std::filesystem::path& weights, const ModelInfo& info,
                    const MakeModel& make = {}, NonFinite nonfinite = NonFinite::refused);

}  // namespace ringlet::train
