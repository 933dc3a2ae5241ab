#include "comm/auto_all_reduce.h"

#include <vector>

#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

bool can_run(std::string_view strategy, Transport& transport) {
  if (strategy == AutoAllReduce::kName) return false;
  if (needs_engine(strategy)) return transport.engine() != nullptr;
  if (needs_peer_access(strategy)) {
    return transport.peer_access() != nullptr && transport.size() <= kMaxReduced;
  }
  return true;
}

/// Round figures: between threads that share a cache, and between processes over a loopback.
CostModel typical_costs(Transport& transport) {
  if (transport.peer_access() != nullptr) return {0.6e-6, 1 / 14e9, 1 / 250e9};
  return {30e-6, 1 / 1.5e9, 1 / 20e9};
}

StrategyTable default_table(Transport& transport) {
  if (transport.engine() != nullptr) return {{transport.size(), 0, "nccl"}};
  std::vector<std::string_view> candidates;
  // What sends nothing first, and taken where the model sees no difference.
  for (const bool sends : {false, true}) {
    for (const std::string_view name : all_reduce_strategies()) {
      if (can_run(name, transport) && needs_peer_access(name) != sends) candidates.push_back(name);
    }
  }
  return modeled_table(candidates, transport.size(), typical_costs(transport));
}

}  // namespace

AutoAllReduce::AutoAllReduce(Transport& transport, const StrategyTable& table)
    : AllReduce(transport), table_(table) {
  std::erase_if(table_, [&](const auto& range) { return !can_run(range.strategy, transport); });
  if (table_.empty()) table_ = default_table(transport);
  for (const StrategyRange& range : table_) {
    auto& strategy = strategies_[range.strategy];
    if (!strategy) strategy = make_all_reduce(range.strategy, transport);
  }
}

void AutoAllReduce::run(Stream& stream, View data, ReduceOp op) {
  strategy_for(data.bytes()).run(stream, data, op);
}

std::optional<std::int64_t> AutoAllReduce::elements_sent(std::int64_t count) const {
  return strategy_for(count * size_of(DType::f32)).elements_sent(count);
}

AllReduce& AutoAllReduce::strategy_for(std::int64_t bytes) const {
  return *strategies_.find(look_up(table_, size(), bytes))->second;
}

}  // namespace ringlet::comm
