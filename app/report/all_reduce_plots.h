// The plots of the benchmark's page.
#pragma once

#include <string>

#include "bench/all_reduce/comparison.h"

namespace ringlet::app::report {

/// Time and bus bandwidth over size, a line a strategy. Where there are several engines (or threads
/// and processes), the first one's strategies, and the best of each other's at each size; below
/// that, each other engine by itself.
std::string plots_of(const bench::Comparison& comparison, int number);

/// For each of the first engine's strategies its points and the curve of its model.
std::string model_plots_of(const bench::Comparison& comparison, int number);

}  // namespace ringlet::app::report
