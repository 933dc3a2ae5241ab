#include "train/setup/fine_tuning.h"

#include <algorithm>

#include "train/files/load_model.h"
#include "train/files/published_weights.h"
#include "train/recipe/models.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::train {

namespace {

bool are_of_imagenet(const std::filesystem::path& weights, const std::string& model) {
  constexpr std::int64_t kClasses = 1000;
  const auto layers = make_model(model, usual_input(model));
  const nn::Registry registry = nn::register_model(*layers);
  return classes_in(model_file_of(find_weights(weights)), registry) == kClasses;
}

}  // namespace

void set_fine_tuning(Recipe& recipe, const GivenOptions& given,
                     const std::filesystem::path& weights) {
  constexpr double kLower = 10, kMostWarmup = 1;
  constexpr int kFewEpochs = 10;
  recipe.lr /= kLower;
  recipe.epochs = kFewEpochs;
  recipe.schedule = ScheduleKind::cosine;
  Recipe with_given = recipe;
  recipe_options().set(with_given, given);
  recipe.head_lr = with_given.lr * kLower;
  if (with_given.schedule != ScheduleKind::one_cycle) {  // which warms up by itself
    recipe.warmup_epochs = std::min(kMostWarmup, with_given.epochs / kLower);
  }
  const bool says_how = given.contains("normalize") || given.contains("normalize_by");
  if (!says_how && are_of_imagenet(weights, recipe.model)) recipe.normalize_by = "imagenet";
}

}  // namespace ringlet::train
