#include "train/loop/best_test.h"

#include <fmt/format.h>

#include "base/error.h"

namespace ringlet::train {

namespace {

/// What the run's tests are compared by: the accuracy, or else the loss.
bool by_accuracy(BestBy by, const Evaluation& test) {
  if (test.figures.empty()) return by != BestBy::loss;
  if (by != BestBy::accuracy) return false;
  std::string measured = "loss";
  for (const Figure& figure : test.figures) {
    if (key_of(figure) != "loss") measured += ", " + figure.name;
  }
  throw ContractError(fmt::format(
      "--best-by accuracy: this task does not measure it, but {}; take --best-by loss", measured));
}

}  // namespace

bool note_best_test(const RunSetup& setup, const Evaluation& test, Progress& progress) {
  if (!setup.keeps_best) return false;
  const bool by_right = by_accuracy(setup.options.recipe.best_by, test);
  const double value = by_right ? test.accuracy() : test.loss;
  std::optional<BestTest>& best = progress.best_test;
  const bool is_better = !best || (by_right ? value > best->value : value < best->value);
  if (is_better) {
    best = BestTest{by_right ? "accuracy" : "loss", value, progress.step, 0};
  } else {
    ++best->worse;
  }
  const int patience = setup.options.recipe.patience;
  const bool is_over = patience > 0 && best->worse >= patience;
  progress.stopped = is_over && progress.step < setup.planned_steps;
  return is_better;
}

void outlast_patience(const Recipe& recipe, const SavedState& former, Progress& progress) {
  if (!progress.stopped || !progress.best_test) return;
  const bool is_longer = recipe.epochs > former.recipe.epochs;
  progress.stopped =
      recipe.patience > 0 && recipe.patience <= progress.best_test->worse && !is_longer;
  if (is_longer) progress.best_test->worse = 0;
}

std::string in_words(const BestTest& best) {
  if (best.by == "accuracy") return fmt::format("test accuracy {:.2f} %", 100 * best.value);
  return fmt::format("test loss {:.4f}", best.value);
}

}  // namespace ringlet::train
