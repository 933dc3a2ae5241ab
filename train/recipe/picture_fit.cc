#include "train/recipe/picture_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "data/picture_spec.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::train {

namespace {

constexpr int kSmall = 64, kLeast = 8;  // pixels of a side
constexpr int kUsual = 128;
constexpr int kLarge = 256;            // from which 224 show more
constexpr std::int64_t kMany = 5000;   // pictures, from which that is learnt
constexpr std::int64_t kFew = 10'000;  // pictures, below which steps are small
constexpr std::int64_t kStep = 32;     // pictures of such a step

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

bool has_margin(const GivenOptions& given) {
  const auto loss = given.find("loss");
  return loss != given.end() && loss->second != OptionValue(std::string("softmax"));
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
  if (pictures == 0 || has_margin(given) || !learns_photographs(model)) return {};
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

std::string in_words(const GivenOptions& chosen) {
  std::string words;
  for (const char* key : {"epochs", "batch_size", "lr", "augment", "label_smoothing"}) {
    const auto found = chosen.find(key);
    if (found == chosen.end()) continue;
    words += words.empty() ? "" : " ";
    words += recipe_options().at(key).flag_name() + " " + text_of(found->second);
  }
  return words;
}

GivenOptions usual_for_fine_tuning(const GivenOptions& given, std::int64_t pictures) {
  constexpr std::int64_t kSteps = 20, kLeastStep = 8, kEpochs = 10, kMostEpochs = 50;
  constexpr std::int64_t kStepsInAll = 200;
  if (pictures == 0 || pictures >= kFew || has_margin(given)) return {};
  GivenOptions usual;
  std::int64_t step = std::clamp(pictures / kSteps, kLeastStep, kStep);
  if (const auto own = given.find("batch_size"); own != given.end()) {
    step = std::get<std::int64_t>(own->second);
  } else if (are_given(given, {"lr", "optimizer", "schedule"})) {
    return {};
  } else {
    usual["batch_size"] = step;
  }
  const std::int64_t steps = std::max<std::int64_t>(1, pictures / std::max<std::int64_t>(1, step));
  const std::int64_t epochs = std::clamp((kStepsInAll + steps - 1) / steps, kEpochs, kMostEpochs);
  if (!given.contains("epochs") && epochs > kEpochs) usual["epochs"] = epochs;
  return usual;
}

int size_for_weights(int median) {
  return median <= kSmall ? std::max(median, kLeast) : data::kUsualImageSize;
}

}  // namespace ringlet::train
