#include "comm/all_reduce/strategy_table.h"

#include <cmath>

namespace ringlet::comm {

namespace {

/// How far apart two numbers of ranks are.
double distance(int ranks, int other) {
  return std::abs(std::log(static_cast<double>(ranks) / static_cast<double>(other)));
}

}  // namespace

std::string_view look_up(const StrategyTable& table, int ranks, std::int64_t bytes) {
  const StrategyRange* best = nullptr;
  for (const StrategyRange& range : table) {
    const bool nearer =
        best == nullptr || distance(range.ranks, ranks) < distance(best->ranks, ranks);
    const bool of_the_same = best != nullptr && range.ranks == best->ranks;
    if (nearer || (of_the_same && range.from_bytes <= bytes)) best = &range;
  }
  return best == nullptr ? std::string_view() : best->strategy;
}

}  // namespace ringlet::comm
