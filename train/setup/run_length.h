// --epochs of a run that is resumed: it is made longer, or shorter.
#pragma once

#include <string>

#include "train/files/state_json.h"
#include "train/setup/run_setup.h"

namespace ringlet::train {

/// Throws ContractError where fewer epochs are asked for than `former` has done.
void require_length(const Recipe& recipe, const StateJson& former, std::int64_t steps_per_epoch);

/// What becomes of the schedule of a run that has another length than before, in words; empty where
/// it has the same.
std::string length_in_words(const RunSetup& setup);

/// Notes the former length in `progress` where the run has another one now.
void note_length(const RunSetup& setup, Progress& progress);

}  // namespace ringlet::train
