#include "train/setup/best_measure.h"

#include <fmt/format.h>

#include <vector>

namespace ringlet::train {

std::string best_measure(const Recipe& recipe, const Task& task) {
  if (recipe.has_margin()) {
    const char* with_margin =
        "goes by the test data, and a --loss with a margin is measured on pairs: --verify keeps "
        "the best model in OUT/best; leave it out";
    require(recipe.best_by == BestBy::automatic, "--best-by", with_margin);
    require(recipe.patience == 0, "--patience", with_margin);
    return {};
  }
  const std::vector<double> nothing(static_cast<std::size_t>(task.metric().numbers));
  const std::vector<Figure> figures = task.evaluation(0, 1, nothing).figures;
  if (figures.empty()) return recipe.best_by == BestBy::loss ? "loss" : "accuracy";
  if (recipe.best_by != BestBy::accuracy) return "loss";
  std::string measured = "loss";
  for (const Figure& figure : figures) {
    if (key_of(figure) != "loss") measured += ", " + figure.name;
  }
  throw ContractError(fmt::format(
      "--best-by accuracy: this task does not measure it, but {}; take --best-by loss", measured));
}

}  // namespace ringlet::train
