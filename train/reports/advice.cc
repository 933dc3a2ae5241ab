#include "train/reports/advice.h"

#include <fmt/format.h>

#include <cmath>

#include "data/augment.h"

namespace ringlet::train {

namespace {

constexpr int kLeastEpochs = 3;
constexpr double kGuessing = 0.98;      // of the loss of equal probabilities
constexpr double kDiverged = 1.5;       // of that loss
constexpr std::int64_t kTelling = 200;  // steps: from fewer, the loss says nothing of the rate
constexpr double kAnother = 10;         // times lower is the rate that is named
constexpr double kByHeart = 0.5;        // of the test loss
constexpr double kFarApart = 0.3;       // between both losses, in nats
constexpr double kNear = 0.85;          // of the test loss
constexpr double kGoodEnough = 0.9;     // answers that are right

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

bool learns_head_alone(const Recipe& recipe) { return recipe.freeze == "all-but-head"; }

/// The rate of what is learnt, as the flag that sets it: "--lr, 0.01 say".
std::string other_rate(const Recipe& recipe) {
  if (learns_head_alone(recipe) && recipe.head_lr > 0) {
    return fmt::format("--head-lr, {:g} say", recipe.head_lr / kAnother);
  }
  return fmt::format("--lr, {:g} say", recipe.lr / kAnother);
}

/// Empty where the training loss is lower than that of guessing.
std::string against_no_progress(const Learnt& learnt, const Recipe& recipe) {
  if (learnt.classes < 2) return {};
  const double guessing = std::log(static_cast<double>(learnt.classes));
  if (learnt.train_loss > kDiverged * guessing) {
    return fmt::format("it diverges: guessing among {} classes has {:.2f}; a lower {}",
                       learnt.classes, guessing, other_rate(recipe));
  }
  if (learnt.train_loss <= kGuessing * guessing) return {};
  if (learnt.steps < kTelling) {
    return fmt::format(
        "{} steps are too few to learn from; more --epochs, or a smaller --batch-size",
        learnt.steps);
  }
  return fmt::format("that is guessing among {} classes; another {}, or more --epochs",
                     learnt.classes, other_rate(recipe));
}

/// For who could learn more.
std::string more_room(const Recipe& recipe) {
  if (!recipe.freeze.empty()) return "less under --freeze";
  return "a larger model";
}

}  // namespace

std::string advice_on(const Learnt& learnt, const Recipe& recipe) {
  // A run of an epoch or two is a trial, and a margin makes the training loss another one.
  if (recipe.epochs < kLeastEpochs || recipe.has_margin()) return {};
  if (!std::isfinite(learnt.train_loss) || !std::isfinite(learnt.test_loss)) return {};
  const std::string losses =
      fmt::format("training loss {:.2f}, test {:.2f}: ", learnt.train_loss, learnt.test_loss);
  if (const std::string remedy = against_no_progress(learnt, recipe); !remedy.empty()) {
    return losses + remedy;
  }
  if (learnt.train_loss < kByHeart * learnt.test_loss &&
      learnt.test_loss - learnt.train_loss > kFarApart) {
    return losses + against_learning_by_heart(learnt, recipe);
  }
  if (learnt.train_loss > kNear * learnt.test_loss && learnt.test_accuracy < kGoodEnough) {
    return fmt::format("{}it could learn more; --epochs {}, or {}", losses, 2 * recipe.epochs,
                       more_room(recipe));
  }
  return {};
}

}  // namespace ringlet::train
