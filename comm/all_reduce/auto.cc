#include "comm/all_reduce/auto.h"

#include <vector>

#include "comm/all_reduce/library.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

bool can_run(std::string_view strategy, Transport& transport) {
  if (strategy == AutoAllReduce::kName) return false;
  if (needs_engine(strategy)) return runs_on(strategy, engine_name(transport));
  if (needs_peer_access(strategy)) {
    return transport.peer_access() != nullptr && transport.size() <= kMaxReduced;
  }
  return true;
}

StrategyTable default_table(Transport& transport) {
  if (engine_name(transport) == NcclAllReduce::kName) {
    return {{transport.size(), 0, NcclAllReduce::kName}};
  }
  std::vector<std::string_view> candidates;
  // Strategies that send nothing come first: they win where the model sees no difference.
  for (const bool sends : {false, true}) {
    for (const std::string_view name : all_reduce_strategies()) {
      if (needs_engine(name) || !can_run(name, transport)) continue;
      if (needs_peer_access(name) != sends) candidates.push_back(name);
    }
  }
  return modeled_table(candidates, transport.size(), transport.typical_costs());
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
