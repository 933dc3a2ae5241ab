#include <fmt/format.h>

#include <algorithm>

#include "data/error.h"
#include "data/image.h"
#include "train/atomic_file.h"
#include "train/cli/predict.h"
#include "train/cli/predicted_image.h"
#include "train/logits.h"
#include "train/predictor.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> images_in(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.is_regular_file() && data::has_image_name(entry.path())) {
        files.push_back(entry.path());
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw data::DataError(folder.string() + ": cannot be listed: " + error.code().message());
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

std::vector<PredictedImage> prepare_all(const ModelInfo& info, const PredictImages& request) {
  const data::ImageTarget target{info.channels, info.height, info.width,
                                 info.background.value_or(0)};
  std::vector<PredictedImage> images;
  for (const fs::path& file : expanded(request.files)) {
    const data::Image image = data::load_image(file);
    images.push_back(
        {.file = file,
         .width = image.width,
         .height = image.height,
         .prepared = data::prepare_image(image, target, request.invert, request.stretch),
         .guesses = {}});
  }
  return images;
}

/// All images in passes through the model.
void guess_all(Device& device, const fs::path& model, const ModelInfo& info, std::size_t top,
               std::vector<PredictedImage>& images) {
  constexpr std::int64_t kLargestPass = 250;
  const std::int64_t count = std::ssize(images);
  Predictor predictor(device, model, info, {.batch = std::min(count, kLargestPass)});
  std::vector<std::uint8_t> pixels;
  for (const PredictedImage& image : images) {
    pixels.insert(pixels.end(), image.prepared.pixels.begin(), image.prepared.pixels.end());
  }
  const std::vector<float> logits = predictor.logits(pixels);
  const std::size_t classes = info.classes.size();
  const std::int64_t broken = first_nonfinite(logits, static_cast<std::int64_t>(classes));
  if (broken >= 0) {
    throw FileError(fmt::format("{} gives {} a number that is not finite; its weights are broken",
                                model.string(),
                                images[static_cast<std::size_t>(broken)].file.string()));
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i].guesses =
        likeliest(std::span<const float>(logits).subspan(i * classes, classes), top);
  }
}

}  // namespace

void predict_images(Device& device, const fs::path& model, const ModelInfo& info, bool assumed,
                    const PredictImages& request) {
  std::vector<PredictedImage> images = prepare_all(info, request);
  guess_all(device, model, info, request.top, images);
  if (!request.save_input.empty()) save_inputs(request.save_input, info, images);
  (request.json ? print_json : print_text)(model, info, assumed, images);
}

}  // namespace ringlet::train
