// The tables of what a run has besides its recipe: where and how it is run, and its files.
#pragma once

#include "train/recipe/option_table.h"
#include "train/recipe/options.h"

namespace ringlet::train {

/// Rows of Execution, of Files, and of TrainOptions itself.
const OptionTable<TrainOptions>& run_options();

/// Throws ContractError, naming the flag, for a value that no run has.
void check_run_ranges(const TrainOptions& options);

}  // namespace ringlet::train
