// The page of a sweep: what is best and by how much, every setting with its seeds, and the curves.
#pragma once

#include <string>
#include <vector>

#include "app/sweep/sweep_results.h"
#include "train/telemetry/metrics_reader.h"

namespace ringlet::app::sweep {

/// The epochs of each of plan.runs; empty for one that has none yet.
using Curves = std::vector<std::vector<train::EpochMetrics>>;

/// An HTML page that stands alone. Plots with the ids by-setting and epochs, tables settings and
/// runs.
std::string sweep_page(const SweepPlan& plan, const Outcomes& outcomes, const Curves& curves,
                       const std::string& title);

}  // namespace ringlet::app::sweep
