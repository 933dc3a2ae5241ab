// StrategyTable: which all-reduce strategy is the fastest from which size on, as `ringlet tune`
// measured it or as the cost model has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/all_reduce/cost_model.h"

namespace ringlet::comm {

struct StrategyRange {
  int ranks = 2;
  std::int64_t from_bytes = 0;  ///< up to the next range of as many ranks
  std::string strategy;
};

/// The ranges of each number of ranks begin at 0 bytes and are in the order of their sizes.
using StrategyTable = std::vector<StrategyRange>;

/// The table's strategy for `bytes` on each of `ranks`. Without entries for this number of ranks,
/// those of the number that is nearest by ratio count. "" for an empty table.
std::string_view look_up(const StrategyTable& table, int ranks, std::int64_t bytes);

/// For each power of two of bytes up to 1 GiB, the candidate that the model says is the fastest.
StrategyTable modeled_table(const std::vector<std::string_view>& candidates, int ranks,
                            const CostModel& model);

}  // namespace ringlet::comm
