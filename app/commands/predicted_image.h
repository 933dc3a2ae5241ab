// What `ringlet predict` found out about an image, and how it is shown.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/images/prepare_image.h"
#include "train/files/model_info.h"
#include "train/loop/logits.h"

namespace ringlet::app {

struct PredictedImage {
  std::filesystem::path file;
  int width = 0;  ///< of the file's picture
  int height = 0;
  data::PreparedImage prepared;
  std::vector<train::Guess> guesses;  ///< the likeliest first
};

/// An image that could not be read.
struct LeftOutImage {
  std::filesystem::path file;
  std::string why;  ///< a line that names it
};

struct PredictedImages {
  std::vector<PredictedImage> read;
  std::vector<LeftOutImage> left_out;
};

/// Where to write what the model saw: of "a/shirt.png" into FOLDER/shirt.pgm, of a second image of
/// the name into shirt-2.pgm; .ppm for a model of colours. None without a folder.
std::vector<std::filesystem::path> names_of_inputs(const std::filesystem::path& folder,
                                                   const train::ModelInfo& info,
                                                   const std::vector<PredictedImage>& images);
/// Writes what the model saw of each image into its file. Throws FileError.
void save_inputs(const std::vector<std::filesystem::path>& files, const train::ModelInfo& info,
                 const std::vector<PredictedImage>& images);

/// As text for people, and as one JSON document for programs. `assumed`: `info` is not from the
/// model's file itself.
void print_text(const std::filesystem::path& model, const train::ModelInfo& info, bool assumed,
                const PredictedImages& images);
void print_json(const std::filesystem::path& model, const train::ModelInfo& info, bool assumed,
                const PredictedImages& images);

}  // namespace ringlet::app
