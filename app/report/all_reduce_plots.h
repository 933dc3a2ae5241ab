// The plots of the benchmark's page.
#pragma once

#include <string>

#include "bench/all_reduce/comparison.h"

namespace ringlet::app::report {

/// Time and bus bandwidth over size, a line a strategy. Around the best one and the ring a band
/// shows the spread of their calls. Where there are several engines (or threads and processes), the
/// first one's strategies, and the best of each other's at each size; below that, each other engine
/// by itself.
Html plots_of(const bench::Comparison& comparison, int number);

/// For each of the first engine's strategies its points and the curve of its model, whose latency
/// and bandwidth stand in the title.
Html model_plots_of(const bench::Comparison& comparison, int number);

}  // namespace ringlet::app::report
