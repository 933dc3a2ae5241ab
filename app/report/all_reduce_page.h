// The page of `ringlet bench all-reduce --report`: time and bus bandwidth over size, the models
// beside the points that they were fitted to, which strategy is the fastest from which size on, the
// table, and the machine. It stands alone, as every page of Ringlet (app/report/page.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/measurement.h"

namespace ringlet::app::report {

/// `machine`: what to_json(MachineRecord) gave, or null where it is not known. Figures have the ids
/// time-K, busbw-K and model-K-STRATEGY for the K-th comparison (comparison.h), K from 1 on.
std::string all_reduce_page(const std::vector<bench::Measurement>& measurements,
                            const nlohmann::json& machine);

/// The page's answer in a sentence: which of the first engine's strategies to take. "two-shot from
/// 8 KiB, 3.1 times as fast as the ring at 32 KiB; doubling up to 4 KiB". One that takes at most a
/// tenth longer than the fastest counts as fast: measured again, it may be the other way round.
std::string answer_of(const bench::Comparison& comparison);

}  // namespace ringlet::app::report
