#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "app/cli/error_exit.h"
#include "app/commands/predict.h"
#include "app/commands/predicted_image.h"
#include "data/error.h"
#include "data/images/image.h"
#include "data/images/picture_reader.h"
#include "train/files/atomic_file.h"
#include "train/loop/logits.h"
#include "train/loop/predictor.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> images_in(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      std::error_code error;  // of a link that leads nowhere or to itself: that picture's alone
      const bool may_be_read = entry.is_regular_file(error) || error;
      if (may_be_read && data::has_image_name(entry.path())) files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    throw data::DataError(folder.string() + ": cannot be listed: " + error.code().message() +
                          "; check its permissions");
  }
  if (files.empty()) {
    throw data::DataError(folder.string() +
                          ": no image lies in this folder (.png, .jpg, .jpeg, .bmp, .pgm, .ppm)");
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Folders replaced by the images in them.
std::vector<fs::path> expanded(const std::vector<fs::path>& named) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::path& path : named) {
    if (fs::is_directory(path, error)) {
      const std::vector<fs::path> inside = images_in(path);
      files.insert(files.end(), inside.begin(), inside.end());
    } else {
      files.push_back(path);
    }
  }
  return files;
}

PredictedImage prepare(const fs::path& file, const train::ModelInfo& info,
                       const PredictImages& request) {
  if (info.photographs) {
    data::PictureReader reader;
    const data::RgbxView picture = reader.load(file, info.exif);
    return {.file = file,
            .width = picture.width,
            .height = picture.height,
            .prepared = data::prepare_photograph(picture, info.height, request.invert),
            .guesses = {}};
  }
  const data::ImageTarget target{info.channels, info.height, info.width,
                                 info.background.value_or(0)};
  const data::Image image = data::load_image(file);
  return {.file = file,
          .width = image.width,
          .height = image.height,
          .prepared = data::prepare_image(image, target, request.invert, request.stretch),
          .guesses = {}};
}

/// Prepares all images. One that cannot be read is left out; if it is the only one, its error is
/// thrown.
PredictedImages prepare_all(const train::ModelInfo& info, const PredictImages& request) {
  PredictedImages images;
  const std::vector<fs::path> files = expanded(request.files);
  for (const fs::path& file : files) {
    try {
      images.read.push_back(prepare(file, info, request));
    } catch (const data::DataError& error) {
      if (files.size() == 1) throw;
      print_warning(error.what());
      images.left_out.push_back({file, error.what()});
    }
  }
  return images;
}

/// Classifies all images, in passes through the model.
void guess_all(Device& device, const fs::path& model, const train::ModelInfo& info,
               const PredictImages& request, std::vector<PredictedImage>& images) {
  constexpr std::int64_t kLargestPass = 250;
  const std::int64_t count = std::ssize(images);
  train::PredictorOptions how = request.how;
  how.batch = std::min(count, kLargestPass);
  train::Predictor predictor(device, model, info, how);
  std::vector<std::uint8_t> pixels;
  for (const PredictedImage& image : images) {
    pixels.insert(pixels.end(), image.prepared.pixels.begin(), image.prepared.pixels.end());
  }
  const std::vector<float> logits = predictor.logits(pixels);
  const std::size_t classes = info.classes.size();
  const std::int64_t broken = train::first_nonfinite(logits, static_cast<std::int64_t>(classes));
  if (broken >= 0) {
    throw train::FileError(
        fmt::format("{} gives {} a number that is not finite; its weights are broken",
                    model.string(), images[static_cast<std::size_t>(broken)].file.string()));
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i].guesses =
        train::likeliest(std::span<const float>(logits).subspan(i * classes, classes), request.top);
  }
}

}  // namespace

void predict_images(Device& device, const fs::path& model, const train::ModelInfo& info,
                    bool assumed, const PredictImages& request, Outputs& outputs) {
  PredictedImages images = prepare_all(info, request);
  const std::vector<fs::path> inputs = names_of_inputs(request.save_input, info, images.read);
  if (!inputs.empty()) train::require_writable_directory(request.save_input);
  for (const PredictedImage& image : images.read) outputs.reads("IMAGE", image.file);
  for (const fs::path& file : inputs) outputs.writes("--save-input", file);
  if (!images.read.empty()) guess_all(device, model, info, request, images.read);
  if (!inputs.empty()) save_inputs(inputs, info, images.read);
  (request.json ? print_json : print_text)(model, info, assumed, images);
  if (images.left_out.empty()) return;
  std::fflush(stdout);
  throw data::DataError(
      fmt::format("{} of {} images cannot be read, as the warnings say; mend or remove them",
                  images.left_out.size(), images.left_out.size() + images.read.size()));
}

}  // namespace ringlet::app
