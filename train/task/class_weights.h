// What each class counts in the loss that is trained on: --class-weights.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace ringlet::train {

/// One for each class of `training`. `text`: the numbers, "1,1,2.5"; or "balanced", which lets all
/// classes count the same together: class k of K counts N / (K n_k), where n_k of the N samples are
/// its own, and one without samples 0. Throws ContractError for anything else.
std::vector<float> class_weights(const std::string& text, const data::Dataset& training);

/// Whether a sample may count so much: 0, or so far from what f32 holds that a batch's sum of
/// weights and losses is finite, and 1 over it too.
bool is_weight(float weight);

}  // namespace ringlet::train
