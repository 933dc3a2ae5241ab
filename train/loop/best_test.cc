#include "train/loop/best_test.h"

#include <fmt/format.h>

namespace ringlet::train {

bool note_best_test(const RunSetup& setup, const Evaluation& test, Progress& progress) {
  if (setup.best_by.empty()) return false;
  const bool by_accuracy = setup.best_by == "accuracy";
  const double value = by_accuracy ? test.accuracy() : test.loss;
  std::optional<BestTest>& best = progress.best_test;
  const bool is_better = !best || (by_accuracy ? value > best->value : value < best->value);
  if (is_better) {
    best = BestTest{setup.best_by, value, progress.step, 0};
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
