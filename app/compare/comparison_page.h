// The page of a comparison: the answer, what is unlike, both sides as lines named by their files,
// the ratios, and every row.
#pragma once

#include <string>

#include "app/compare/comparison.h"

namespace ringlet::app::compare {

/// An HTML page that stands alone. For rows with sizes plots with the ids ratio-G, of group G from
/// 1 on, and time-G-N, of its strategy N; else one with the id of each line that both sides have.
/// Table rows.
std::string comparison_page(const Comparison& comparison);

}  // namespace ringlet::app::compare
