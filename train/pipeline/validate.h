// Whether a pipeline may run: each fault would be a wrong gradient, too little memory, or a run
// that never ends. Checked in this order; the first that is found is told.
//
//   passes      each micro-batch has one F and one B on each stage, B behind F; Fs ascend, Bs too
//   sync        one, at the end
//   messages    each is sent once and received once, by the neighbour that it is for, and those of
//               a pair of stages in one order on both sides
//   data        an F has its activation, a B its gradient, and nothing is sent before it is there
//   held        no more passes than the stage has room for (Pipeline::held)
//   circle      no stages wait for each other (simulate.h)
#pragma once

#include <optional>
#include <string>

#include "train/pipeline/program.h"

namespace ringlet::train {

/// The first fault in words that name stage and action: "stage 1 does B2 before F2".
std::optional<std::string> find_fault(const Pipeline& pipeline);

/// Throws ContractError with "pipeline '1f1b': " and the fault, if there is one.
void validate(const Pipeline& pipeline);

}  // namespace ringlet::train
