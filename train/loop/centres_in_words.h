// What a run by a loss with a margin says of its classes' centres before the first step.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nn/parameters.h"
#include "train/optimizers/optimizer.h"

namespace ringlet::train {

/// How many there are, what the most that a replica has of them take, and whether it keeps a step's
/// logits. Asked on rank 0, which has the most. `samples`: of a pass, on all ranks.
std::string centres_in_words(const nn::Parameters& parameters, std::span<const StateArena> state,
                             std::int64_t samples);

/// Where `scale` is below the bound of NormFace's second proposition (Wang et al., 2017), with
/// C classes of as many samples each:
///
///   (C - 1) / C * log((C - 1) p / (1 - p))   is needed for a probability of p = 0.9
///   log(1 + (C - 1) exp(-scale C / (C - 1)))   is then the least loss: cosines of 1 with the own
///                                              centre, -1 / (C - 1) with all others
///
/// Empty where it is not.
std::string low_scale_in_words(double scale, std::int64_t classes);

}  // namespace ringlet::train
