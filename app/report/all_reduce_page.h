// The page of `ringlet bench all-reduce --report`: time and bus bandwidth over size, the models
// beside the points that they were fitted to, which strategy is the fastest from which size on, the
// table, and the machine. It stands alone, as every page of Ringlet (app/report/html.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/report/html.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/measurement.h"

namespace ringlet::app::report {

/// Where some of a page's rows come from.
struct RowsOrigin {
  std::string name;        ///< "this measurement", or a file's
  nlohmann::json machine;  ///< as to_json(MachineRecord) gives it; null where it is not known
};
/// "AMD EPYC, 2 cores, 2026-11-22T03:00:40Z"
std::string text_of(const RowsOrigin& origin);

/// Figures have the ids time-K, busbw-K and model-K-STRATEGY for the K-th comparison
/// (comparison.h), K from 1 on; where a strategy ran over several transports,
/// model-K-STRATEGY-TRANSPORT.
std::string all_reduce_page(const std::vector<bench::Measurement>& measurements,
                            const std::vector<RowsOrigin>& origins);

/// The page's answer in a sentence: which of the first engine's strategies to take. "two-shot from
/// 8 KiB, 3.1 times as fast as the ring at 32 KiB; doubling up to 4 KiB". One that takes at most a
/// tenth longer than the fastest counts as fast, and so does one that is equal to it
/// (comparison.h): measured again, it may be the other way round. Those that are equal at all of
/// the sizes are named together. Says so where no row counts.
std::string answer_of(const bench::Comparison& comparison);

/// Time and bus bandwidth over size, a line a strategy. Around the best one and the ring a band
/// shows the spread of their calls. Where there are several engines (or threads and processes), the
/// first one's strategies, and the best of each other's at each size; below that, each other engine
/// by itself.
Html plots_of(const bench::Comparison& comparison, int number);

/// For each of the first engine's strategies its points and the curve of its model, whose latency
/// and bandwidth stand in the title.
Html model_plots_of(const bench::Comparison& comparison, int number);

}  // namespace ringlet::app::report
