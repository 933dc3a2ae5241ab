// The final numbers of a run, and which of several runs came out best.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "app/report/run_folder.h"

namespace ringlet::app::report {

struct RunResult {
  std::int64_t steps = 0;
  double train_loss = NAN, test_loss = NAN, test_accuracy = NAN;  ///< of the last epoch
  double best_accuracy = NAN;                                     ///< of all epochs
  std::int64_t best_epoch = 0;
  double seconds = 0, speed = NAN, sync_share = NAN;  ///< over all epochs
};

RunResult result_of(const RunFolder& run);

/// The run whose last test accuracy is the highest; of equals, the first. 0 where none has one.
std::size_t best_run(const std::vector<RunFolder>& runs);

/// The colour of a run in all plots and tables: kBest, kBaseline for the first one, kGrey for the
/// others. Of two runs neither is grey.
int color_of(const std::vector<RunFolder>& runs, std::size_t run);

}  // namespace ringlet::app::report
