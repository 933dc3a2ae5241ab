// What a strategy sends, beside what it may send and what the star sends.
#pragma once

#include <cstdint>
#include <string>

#include "comm/all_reduce/strategies.h"
#include "comm/schedule/schedule.h"
#include "learn/check/chapters.h"
#include "learn/check/child.h"

namespace ringlet::learn {

/// A multiple of every number of ranks up to 8, so that all parts are equal.
inline constexpr std::int64_t kMeasuredElements = 840;
inline constexpr int kMeasuredRanks = 4;

/// In lockstep, of an all-reduce of kMeasuredElements on kMeasuredRanks.
Costs measure(const Chapter& chapter, const comm::MakeAllReduce& make, Board& board);

/// Concludes where more was sent for kMeasuredElements of f32 than the chapter allows, or less than
/// messages can do with.
void check_bound(const Chapter& chapter, int ranks, const comm::Totals& totals, Board& board);

/// Concludes where numbers are missing on 5 machines of 3 or on 8 of 8, or where it takes longer
/// than the flat ring on machines of 8 ranks: 16 of them, then 512.
/// Returns both times on these, in words.
std::string check_levels(const comm::MakeAllReduce& make, Board& board);

/// Of a file that has passed.
std::string words_of_passed(const Chapter& chapter, const Costs& own, const Costs& star);

}  // namespace ringlet::learn
