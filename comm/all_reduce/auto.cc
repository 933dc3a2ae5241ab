#include "comm/all_reduce/auto.h"

#include <algorithm>

#include "comm/all_reduce/library.h"

namespace ringlet::comm {

namespace {

bool can_run(std::string_view name, const Strategies& strategies, Transport& transport) {
  const Strategy* strategy = strategies.find(name);
  return strategy != nullptr && has(transport, strategy->needs);
}

StrategyTable default_table(const Strategies& strategies, Transport& transport) {
  if (engine_name(transport) == NcclAllReduce::kName) {
    return {{transport.size(), 0, NcclAllReduce::kName}};
  }
  return modeled_table(strategies_over(transport, strategies), transport.size(),
                       [&](const Strategy& strategy, double bytes) {
                         return predicted_seconds(strategy, transport, bytes);
                       });
}

}  // namespace

AutoAllReduce::AutoAllReduce(Transport& transport, const Strategies& strategies,
                             const StrategyTable& table)
    : AllReduce(transport), table_(table) {
  std::erase_if(table_, [&](const StrategyRange& range) {
    return !can_run(range.strategy, strategies, transport);
  });
  goes_by_costs_ = table_.empty();
  if (goes_by_costs_) table_ = default_table(strategies, transport);
  for (const StrategyRange& range : table_) {
    auto& strategy = strategies_[range.strategy];
    if (!strategy) strategy = strategies.make(range.strategy, transport);
  }
  for (const StrategyRange& range : ranges_for(table_, size())) {
    ranges_.push_back({range.from_bytes, strategies_.find(range.strategy)->second.get()});
  }
}

void AutoAllReduce::run(Stream& stream, View data, ReduceOp op) {
  strategy_for(data.bytes()).run(stream, data, op);
}

bool AutoAllReduce::run_short(Stream& stream, const Flat& data, ReduceOp op) {
  return strategy_for(data.bytes()).run_short(stream, data, op);
}

std::optional<std::int64_t> AutoAllReduce::elements_sent(std::int64_t count) const {
  return strategy_for(count * size_of(DType::f32)).elements_sent(count);
}

AllReduce& AutoAllReduce::strategy_for(std::int64_t bytes) const {
  const Range* found = &ranges_.front();
  for (const Range& range : ranges_) {
    if (range.from_bytes <= bytes) found = &range;
  }
  return *found->strategy;
}

std::vector<Strategy> strategies_over(Transport& transport, const Strategies& strategies) {
  std::vector<Strategy> candidates = strategies.all();
  std::erase_if(candidates, [&](const Strategy& strategy) {
    return needs_engine(strategy.needs) || !has(transport, strategy.needs);
  });
  std::stable_partition(candidates.begin(), candidates.end(), [](const Strategy& strategy) {
    return strategy.needs == Needs::peer_access;
  });
  return candidates;
}

StrategyTable modeled_table(
    const std::vector<Strategy>& candidates, int ranks,
    const std::function<double(const Strategy& candidate, double bytes)>& seconds) {
  constexpr int kLargest = 30;  // 1 GiB
  const auto fastest_for = [&](std::int64_t bytes) -> std::string_view {
    const auto size = static_cast<double>(bytes);
    const auto fastest =
        std::min_element(candidates.begin(), candidates.end(),
                         [&](auto& a, auto& b) { return seconds(a, size) < seconds(b, size); });
    return fastest->name;
  };
  StrategyTable table;
  for (int power = 0; power <= kLargest && !candidates.empty(); ++power) {
    std::int64_t least = power == 0 ? 0 : std::int64_t{1} << power;
    const std::string_view fastest = fastest_for(least);
    if (!table.empty() && table.back().strategy == fastest) continue;
    if (!table.empty()) {  // from where on, up to an element
      for (std::int64_t below = least / 2; least - below > size_of(DType::f32);) {
        const std::int64_t middle = below + (least - below) / 2;
        (fastest_for(middle) == fastest ? least : below) = middle;
      }
    }
    table.push_back({ranks, least, std::string(fastest)});
  }
  return table;
}

StrategyTable modeled_table(const std::vector<Strategy>& candidates, int ranks,
                            const CostModel& model) {
  return modeled_table(candidates, ranks, [&](const Strategy& strategy, double bytes) {
    return predicted_seconds(strategy.path_cost, ranks, bytes, model);
  });
}

}  // namespace ringlet::comm
