// StrategyTable: which all-reduce strategy is the fastest from which size on, as `ringlet tune`
// measured it or as the cost model has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::comm {

struct StrategyRange {
  int ranks = 2;
  std::int64_t from_bytes = 0;  ///< up to the next range of as many ranks
  std::string strategy;
};

/// The ranges of each number of ranks begin at 0 bytes and are in the order of their sizes.
using StrategyTable = std::vector<StrategyRange>;

/// The ranges by which look_up() goes for so many ranks, as ranges of that number.
StrategyTable ranges_for(const StrategyTable& table, int ranks);

/// "0 doubling;4096 two-shot", of the ranges of one number of ranks.
std::string format_table(const StrategyTable& table);
/// Reads that back. Throws std::runtime_error saying what is wrong with it.
StrategyTable parse_table(std::string_view text, int ranks);

/// The table's strategy for `bytes` on each of `ranks`. Without entries for this number of ranks,
/// those of the number that is nearest by ratio count. "" for an empty table.
std::string_view look_up(const StrategyTable& table, int ranks, std::int64_t bytes);

}  // namespace ringlet::comm
