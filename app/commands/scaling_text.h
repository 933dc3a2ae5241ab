// What `ringlet bench train --replicas 1,2,4` says of its rows.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/training/scaling.h"
#include "bench/training/scaling_forecast.h"

namespace ringlet::app {

/// All that was measured, and what follows from it.
struct ScalingResult {
  bench::BatchRule rule = bench::BatchRule::fixed;
  std::int64_t steps = 0;  ///< of each row
  std::string settings{};  ///< "lenet-d2l, a batch of 256, replicas as threads, ..."
  std::string too_few{};   ///< where replicas share: "processors (2) than their threads"
  std::vector<bench::ScalingRow> rows{};
  bench::ScalingForecast forecast{};
};

/// Tables in at most 100 columns, what has to be known of single rows, and the answer.
std::string scaling_text(const ScalingResult& result);

/// What has to be known of single rows: why they do not count, what they share.
std::vector<std::string> notes_of(const ScalingResult& result);

/// "the slowest of 2 replicas computes 3.1 % longer than the quickest; replica 1 comes last in 62 %
/// of the steps", of each row where it is seen.
std::vector<std::string> spread_of(const ScalingResult& result);

/// "batch", "rows", "busy" and "another_device".
nlohmann::json scaling_json(const ScalingResult& result);

}  // namespace ringlet::app
