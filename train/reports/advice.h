// A sentence of advice at the end of a run: what its losses say about what to change.
//
//   the training loss is far above that of         it diverges: a lower rate
//   guessing
//   the training loss is that of guessing          it has learnt nothing: another rate, or more
//                                                  steps
//   the training loss is far below the test loss   it learns by heart: more variation, more samples
//   both are near, and many answers are wrong      it could learn more: more epochs
//
// Losses of varied images and of smoothed labels are higher than those of the test, so the first
// and the last are said carefully, and often nothing is said at all.
#pragma once

#include <cstdint>
#include <string>

#include "train/recipe/options.h"

namespace ringlet::train {

/// The last epoch of a run that has made all its epochs.
struct Learnt {
  double train_loss = 0, test_loss = 0;
  double test_accuracy = 0;  ///< from 0 to 1
  std::int64_t classes = 0;
  bool photographs = false;  ///< of a folder: --augment is for these
  std::int64_t steps = 0;    ///< of the whole run
};

/// Empty: there is nothing to say, or a number is not finite.
std::string advice_on(const Learnt& learnt, const Recipe& recipe);

}  // namespace ringlet::train
