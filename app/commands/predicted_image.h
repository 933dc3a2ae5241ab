// What `ringlet predict` found out about an image, and how it is shown.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/images/prepare_image.h"
#include "train/files/model_info.h"
#include "train/task/classification_logits.h"

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

/// Where to write what the model saw, image by image: of "a/shirt.png" into FOLDER/shirt.pgm, of a
/// second image of the name into shirt-2.pgm, if no other took that; .ppm for a model of colours.
class InputNames {
 public:
  InputNames(std::filesystem::path folder, const train::ModelInfo& info);
  std::filesystem::path next(const std::filesystem::path& image);

 private:
  std::filesystem::path folder_;
  const char* extension_;
  std::map<std::string, int> uses_;
  std::set<std::string> taken_;
};

/// Writes what the model saw of an image. Throws FileError.
void save_input(const std::filesystem::path& file, const train::ModelInfo& info,
                const PredictedImage& image);

/// Shows images as they come: as text for people, whose columns are those of the images that come
/// together, or as one JSON document for programs.
class ImagePrinter {
 public:
  /// `assumed`: `info` is not from the model's file itself. Both must outlive the printer.
  ImagePrinter(const std::filesystem::path& model, const train::ModelInfo& info, bool assumed,
               bool json);

  void print(const std::vector<PredictedImage>& images);
  /// To be called last.
  void finish(const std::vector<LeftOutImage>& left_out);

 private:
  void begin();
  void print_text(const std::vector<PredictedImage>& images) const;
  void print_json(const std::vector<PredictedImage>& images);

  const std::filesystem::path& model_;
  const train::ModelInfo& info_;
  bool assumed_, json_;
  bool begun_ = false;
  bool has_images_ = false;
};

}  // namespace ringlet::app
