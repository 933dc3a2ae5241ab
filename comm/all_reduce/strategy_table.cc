#include "comm/all_reduce/strategy_table.h"

#include <algorithm>
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

StrategyTable modeled_table(const std::vector<std::string_view>& candidates, int ranks,
                            const CostModel& model) {
  constexpr int kLargest = 30;  // 1 GiB
  StrategyTable table;
  for (int power = 0; power <= kLargest && !candidates.empty(); ++power) {
    const std::int64_t bytes = power == 0 ? 0 : std::int64_t{1} << power;
    const auto seconds = [&](std::string_view strategy) {
      return predicted_seconds(strategy, ranks, static_cast<double>(bytes), model);
    };
    const auto fastest = std::min_element(candidates.begin(), candidates.end(),
                                          [&](auto a, auto b) { return seconds(a) < seconds(b); });
    if (table.empty() || table.back().strategy != *fastest) {
      table.push_back({ranks, bytes, std::string(*fastest)});
    }
  }
  return table;
}

}  // namespace ringlet::comm
