#include "app/report/run_result.h"

#include <algorithm>

#include "app/report/svg_plot.h"

namespace ringlet::app::report {

RunResult result_of(const RunFolder& run) {
  RunResult result;
  if (run.metrics.steps.size() > 0) result.steps = run.metrics.steps.step.back();
  double samples = 0, sync = 0;
  for (const train::EpochMetrics& epoch : run.metrics.epochs) {
    result.train_loss = epoch.train_loss;
    result.test_loss = epoch.test_loss;
    result.test_accuracy = epoch.test_accuracy;
    if (!(epoch.test_accuracy <= result.best_accuracy) && std::isfinite(epoch.test_accuracy)) {
      result.best_accuracy = epoch.test_accuracy;
      result.best_epoch = epoch.epoch;
    }
    result.seconds += epoch.seconds;
    samples += epoch.seconds * epoch.samples_per_second;
    sync += epoch.seconds * epoch.sync_share;
  }
  if (result.seconds > 0) {
    result.speed = samples / result.seconds;
    result.sync_share = sync / result.seconds;
  }
  return result;
}

std::size_t best_run(const std::vector<RunFolder>& runs) {
  const auto worse = [](const RunFolder& a, const RunFolder& b) {
    const double of_a = result_of(a).test_accuracy, of_b = result_of(b).test_accuracy;
    return std::isfinite(of_b) && !(of_a >= of_b);
  };
  return static_cast<std::size_t>(std::max_element(runs.begin(), runs.end(), worse) - runs.begin());
}

int color_of(const std::vector<RunFolder>& runs, std::size_t run) {
  if (run == best_run(runs)) return kBest;
  return run == 0 || runs.size() == 2 ? kBaseline : kGrey;
}

}  // namespace ringlet::app::report
