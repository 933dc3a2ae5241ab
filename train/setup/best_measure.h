// What tells the best of a run's tests.
#pragma once

#include <string>

#include "train/recipe/options.h"
#include "train/task/task.h"

namespace ringlet::train {

/// "accuracy" or "loss", as --best-by says; empty where nothing does: the model of a loss with a
/// margin is kept by its verification. Throws ContractError naming what is measured instead.
std::string best_measure(const Recipe& recipe, const Task& task);

}  // namespace ringlet::train
