// Which of a model's parameters are not learnt (--freeze), and which have a rate of their own
// (--head-lr).
//
//   "conv1,layer1"    parameters and layers by name: all that begins with "conv1." or "layer1."
//   "all-but-head"    all but the model's last layer (nn/last_layer.h)
//
// A batch norm whose layer is frozen normalises by its running statistics in training as well, and
// keeps them: what it computes is then what it computes in evaluation, whatever the batch is. What
// lies before all that is learnt has no backward.
#pragma once

#include <string>

#include "nn/parameter.h"
#include "train/recipe/options.h"

namespace ringlet::train {

/// Marks the parameters as `recipe` says. Before plan and memory. Throws ContractError naming what
/// there is, for a name that no parameter has, and where nothing would be left to learn.
void mark_parameters(const nn::Registry& registry, const Recipe& recipe);
/// Throws ContractError where --head-lr is for a last layer that mark_parameters() has frozen.
void require_head_learns(const nn::Registry& registry, const Recipe& recipe);

}  // namespace ringlet::train
