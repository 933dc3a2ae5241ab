// How many stages Execution::stages cuts a model into, and how many replicas that leaves.
#pragma once

#include <string>

#include "train/recipe/options.h"

namespace ringlet::train {

/// Whether it is a number, and does not name what each stage has.
bool is_stage_count(const std::string& stages);
/// How many stages Execution::stages says. Throws ContractError for a number below 1.
int stages_in(const std::string& stages);
/// The replicas of a world of so many ranks. Throws ContractError where these are no multiple of
/// the stages.
int replicas_in(int world, const Execution& execution);

/// Whether its devices are not all of one kind.
bool mixes_kinds(const Execution& execution);

}  // namespace ringlet::train
