// The page of `ringlet bench train --replicas 1,2,4`: whether another device would pay, samples a
// second and efficiency by replicas, the parts of a step, and every row.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/training/scaling.h"
#include "bench/training/scaling_forecast.h"

namespace ringlet::app::report {

struct ScalingPage {
  bench::BatchRule rule = bench::BatchRule::fixed;
  std::vector<bench::ScalingRow> rows{};
  bench::ScalingForecast forecast{};
  std::string settings{};             ///< in words
  std::vector<std::string> notes{};   ///< on single rows
  std::vector<std::string> spread{};  ///< a line for each row whose ranks can be told apart
  nlohmann::json machine{};           ///< processor, cores, instruction_set, gpu
};

/// An HTML page that stands alone. Plots with the ids rate, efficiency and step (of rows whose
/// parts are seen), tables rows and parts.
std::string scaling_page(const ScalingPage& page);

}  // namespace ringlet::app::report
