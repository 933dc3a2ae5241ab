// What `ringlet bench train --why` says of a step's time.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/training/step_gap.h"

namespace ringlet::app {

/// A table with bars, and one sentence that names the largest cause and what to try. `batch_size`:
/// of the world; `vector`: samples that a full vector holds where the layout keeps samples side by
/// side, else 1.
std::string step_gap_text(const bench::StepGap& gap, std::int64_t batch_size, int vector);

/// ideal_ms, smaller_share_ms, ..., step_ms.
nlohmann::json step_gap_json(const bench::StepGap& gap);

}  // namespace ringlet::app
