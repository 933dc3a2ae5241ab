// --no-decay: which parameters weight decay passes over, by what kind of parameter they are
// (nn/parameter.h), as PyTorch's users have it with two groups of parameters.
#pragma once

#include <string>

#include "kernels/memory.h"
#include "nn/parameters.h"
#include "train/recipe/optimizer_spec.h"

namespace ringlet::train {

struct NoDecay {
  bool norm = false;  ///< parameters of layers that normalise
  bool bias = false;  ///< all that have fewer than two dimensions besides
};

/// Throws ContractError naming the choices.
NoDecay parse_no_decay(const std::string& name);

/// The table that updates take (kernels/decay_table.h), on `device`; empty where all parameters
/// decay.
Tensor decay_table(Device& device, const nn::Parameters& parameters, const NoDecay& without);

}  // namespace ringlet::train
