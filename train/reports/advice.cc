#include "train/reports/advice.h"

#include <fmt/format.h>

#include <cmath>

#include "data/augment.h"

namespace ringlet::train {

namespace {

constexpr int kLeastEpochs = 3;
constexpr double kGuessing = 0.98;   // of the loss of equal probabilities
constexpr double kByHeart = 0.5;     // of the test loss
constexpr double kFarApart = 0.3;    // between both losses, in nats
constexpr double kNear = 0.85;       // of the test loss
constexpr double kGoodEnough = 0.9;  // answers that are right

/// What varies the images more than the recipe does; empty: nothing here does.
std::string more_variation(const Recipe& recipe) {
  switch (data::parse_augment(recipe.augment)) {
    case data::Augment::none:
    case data::Augment::flip:
      return "--augment crop-flip";
    case data::Augment::crop_flip:
      return "--augment random-resized-crop";
    case data::Augment::random_resized_crop:
      break;
  }
  return recipe.label_smoothing > 0 ? "" : "--label-smoothing 0.1";
}

std::string against_learning_by_heart(const Learnt& learnt, const Recipe& recipe) {
  const char* more = learnt.photographs ? "more pictures" : "more samples";
  const std::string variation = learnt.photographs ? more_variation(recipe) : "";
  if (variation.empty()) return fmt::format("it learns by heart; {} would help most", more);
  return fmt::format("it learns by heart; {}, or {}", variation, more);
}

}  // namespace

std::string advice_on(const Learnt& learnt, const Recipe& recipe) {
  // A run of an epoch or two is a trial, and a margin makes the training loss another one.
  if (recipe.epochs < kLeastEpochs || recipe.has_margin()) return {};
  if (!std::isfinite(learnt.train_loss) || !std::isfinite(learnt.test_loss)) return {};
  const std::string losses =
      fmt::format("training loss {:.2f}, test {:.2f}: ", learnt.train_loss, learnt.test_loss);
  if (learnt.classes > 1 &&
      learnt.train_loss > kGuessing * std::log(static_cast<double>(learnt.classes))) {
    return fmt::format(
        "{}that is guessing among {} classes; another --lr, {:g} say, or more --epochs", losses,
        learnt.classes, recipe.lr / 10);
  }
  if (learnt.train_loss < kByHeart * learnt.test_loss &&
      learnt.test_loss - learnt.train_loss > kFarApart) {
    return losses + against_learning_by_heart(learnt, recipe);
  }
  if (learnt.train_loss > kNear * learnt.test_loss && learnt.test_accuracy < kGoodEnough) {
    return fmt::format("{}it could learn more; --epochs {}, or a larger model", losses,
                       2 * recipe.epochs);
  }
  return {};
}

}  // namespace ringlet::train
