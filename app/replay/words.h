// How pages and pictures name what is in a cell.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/schedule/contributions.h"

namespace ringlet::app::replay {

/// 1234567 as "1,234,567"
std::string count_text(std::int64_t count);
/// "12.3 µs", "1.2 ms"
std::string time_text(double us);
/// "0-2, 5": numbers in rising order.
std::string ranges_of(std::span<const int> numbers);
/// The ranks whose numbers are there: "0-2, 5", "all", "1 twice"
std::string words_of(const comm::Counts& has);
/// Whether each rank's numbers are there once.
bool is_whole(const comm::Counts& has);
bool has_twice(const comm::Counts& has);

}  // namespace ringlet::app::replay
