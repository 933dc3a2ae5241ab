#include "train/recipe/picture_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "data/picture_spec.h"

namespace ringlet::train {

namespace {

constexpr int kSmall = 64, kLeast = 8;  // pixels of a side
constexpr int kUsual = 128;
constexpr int kLarge = 256;           // from which 224 show more
constexpr std::int64_t kMany = 5000;  // pictures, from which that is learnt

/// Fewer pictures are seen more often, and yet in fewer steps.
std::int64_t epochs_for(std::int64_t pictures) {
  constexpr double kEpochs = 50, kPictures = 800, kFewest = 15, kMost = 100;
  const double epochs =
      kEpochs * std::cbrt(kPictures / static_cast<double>(std::max<std::int64_t>(pictures, 1)));
  return std::lround(std::clamp(epochs, kFewest, kMost));
}

bool learns_photographs(std::string_view model) {
  constexpr std::array<std::string_view, 5> kThese{"resnet18", "resnet34", "resnet50",
                                                   "resnet18-cifar", "resnet20"};
  return std::find(kThese.begin(), kThese.end(), model) != kThese.end();
}

bool are_given(const GivenOptions& given, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const char* key) { return given.contains(key); });
}

}  // namespace

std::string model_for(int image_size) { return image_size <= kSmall ? "resnet20" : "resnet18"; }

PictureFit fit_to_pictures(int median, std::int64_t pictures) {
  const bool detailed = median >= kLarge && pictures >= kMany;
  const int side = median <= kSmall ? std::max(median, kLeast)
                   : detailed       ? data::kUsualImageSize
                                    : kUsual;
  return {side, model_for(side)};
}

GivenOptions usual_for_pictures(const std::string& model, const GivenOptions& given,
                                std::int64_t pictures) {
  constexpr std::int64_t kFew = 10'000, kStep = 32;
  const auto loss = given.find("loss");
  const bool has_margin =
      loss != given.end() && loss->second != OptionValue(std::string("softmax"));
  if (pictures == 0 || has_margin || !learns_photographs(model)) return {};
  GivenOptions usual;
  const auto choose = [&](const char* key, const OptionValue& value) {
    if (!given.contains(key)) usual[key] = value;
  };
  choose("epochs", epochs_for(pictures));
  if (pictures < kFew && !are_given(given, {"batch_size", "lr", "optimizer", "schedule"})) {
    choose("batch_size", kStep);
    choose("lr", 0.1);
  }
  choose("augment", std::string("crop-flip"));
  choose("label_smoothing", 0.1);
  return usual;
}

int size_for_weights(int median) {
  return median <= kSmall ? std::max(median, kLeast) : data::kUsualImageSize;
}

}  // namespace ringlet::train
