// The best test of a run's epochs, and --patience.
#pragma once

#include <string>

#include "train/setup/run_setup.h"
#include "train/task/evaluation.h"

namespace ringlet::train {

/// Takes the test of an epoch up, after progress.step: whether it is the best one so far. Of equals
/// the first is. Says in `progress` where patience ends the run with it. Throws ContractError where
/// --best-by asks for an accuracy and the task measures other figures.
bool note_best_test(const RunSetup& setup, const Evaluation& test, Progress& progress);

/// Where a run that patience had ended is to go on, with a larger one or more epochs, it does.
/// `former`: how the run was saved.
void outlast_patience(const Recipe& recipe, const SavedState& former, Progress& progress);

/// "test accuracy 64.10 %", "test loss 1.2345"
std::string in_words(const BestTest& best);

}  // namespace ringlet::train
