// Which of a run's models is kept beside the last one, and whether a run that gets no better ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/recipe/option.h"

namespace ringlet::train {

/// What tells of two tests which is the better one.
enum class BestBy : std::uint8_t {
  automatic,  ///< accuracy where it is measured, else loss
  accuracy,
  loss
};

struct BestSpec {
  BestBy best_by = BestBy::automatic;
  int patience = 0;  ///< epochs without a better test behind which a run ends; 0: never

  bool operator==(const BestSpec&) const = default;
};

std::vector<Option<BestSpec>> best_options();

}  // namespace ringlet::train
