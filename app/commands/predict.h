// What `ringlet predict` does once its flags are read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/outputs.h"
#include "data/dataset.h"
#include "data/images/prepare_image.h"
#include "kernels/device.h"
#include "train/files/model_info.h"
#include "train/loop/predictor.h"
#include "train/reports/reports.h"

namespace ringlet::app {

struct PredictImages {
  std::vector<std::filesystem::path> files;  ///< images, and folders of images
  int top = 3;                               ///< classes of each
  data::Invert invert = data::Invert::automatic;
  bool stretch = true;  ///< levels, see data/images/prepare_image.h
  bool json = false;
  train::PredictorOptions how{};     ///< its batch is not read
  std::filesystem::path embeddings;  ///< file for these, instead of classes
  std::filesystem::path save_input;  ///< folder for the images as the model sees them; empty: none
};

/// Prints the likeliest classes of each image, and what was done to the image before, pass by pass:
/// no more than a pass is kept in memory. `assumed`: `info` is not from the file itself, which is
/// then said. Of several images, those that cannot be read are named in warnings and left out, and
/// a DataError is thrown at the end. `outputs` is asked for the images that are written. Where
/// embeddings are, nothing is printed, and names_file_of() has the images that have a row. Returns
/// the numbers of an image's answer. Throws FileError.
std::int64_t predict_images(Device& device, const std::filesystem::path& model,
                            const train::ModelInfo& info, bool assumed,
                            const PredictImages& request, Outputs& outputs);

/// Writes the embedding of each image of `dataset`, in its order: what the model answers, or where
/// `how` says so its features; of a folder of pictures names_file_of() has these. Returns their
/// numbers. Throws FileError.
std::int64_t write_embeddings(Device& device, const std::filesystem::path& model,
                              const train::ModelInfo& info,
                              const std::shared_ptr<const data::Dataset>& dataset,
                              const train::PredictorOptions& how, const std::filesystem::path& out);

/// Writes logits and labels to `out` unless that is empty, and judges them. Throws FileError.
train::Evaluation predict_dataset(Device& device, const std::filesystem::path& model,
                                  const train::ModelInfo& info,
                                  const std::shared_ptr<const data::Dataset>& dataset,
                                  const train::PredictorOptions& how,
                                  const std::filesystem::path& out);

}  // namespace ringlet::app
