// What the loss that is trained on has besides logits and labels.
#pragma once

#include <vector>

#include "train/recipe/option.h"

namespace ringlet::train {

struct LossSpec {
  double label_smoothing = 0;  ///< of the loss that is trained on

  bool operator==(const LossSpec&) const = default;
};

inline std::vector<Option<LossSpec>> loss_options() {
  return {option("label_smoothing", &LossSpec::label_smoothing,
                 {.help = "share of each label that all classes get alike, in training",
                  .range = from(0).below(1)})};
}

}  // namespace ringlet::train
