#include "comm/all_reduce/strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/doubling.h"
#include "comm/all_reduce/halving_doubling.h"
#include "comm/all_reduce/library.h"
#include "comm/all_reduce/naive.h"
#include "comm/all_reduce/one_shot.h"
#include "comm/all_reduce/ring.h"
#include "comm/all_reduce/tree.h"
#include "comm/all_reduce/two_level.h"
#include "comm/all_reduce/two_shot.h"

namespace ringlet::comm {

double predicted_seconds(const Strategy& strategy, const Transport& transport, double bytes,
                         double between) {
  const int machines = transport.world().machines;
  if (machines == 1) {
    return predicted_seconds(strategy.path_cost, transport.size(), bytes,
                             transport.typical_costs());
  }
  const int each = (transport.size() + machines - 1) / machines;
  CostModel link = transport.typical_costs();
  link.seconds_per_byte *= between;
  const LevelCosts levels = strategy.costs_of_levels(machines, each, bytes, link);
  return seconds_of(levels.between, link) +
         seconds_of(levels.inside, transport.typical_costs_inside());
}

Strategies::Strategies()
    : all_{
          strategy_of<NaiveAllReduce>(),    strategy_of<TreeAllReduce>(),
          strategy_of<RingAllReduce>(),     strategy_of<HalvingDoublingAllReduce>(),
          strategy_of<DoublingAllReduce>(), strategy_of<TwoLevelAllReduce>(),
          strategy_of<OneShotAllReduce>(),  strategy_of<TwoShotAllReduce>(),
          strategy_of<NcclAllReduce>(),     strategy_of<GlooAllReduce>(),
          strategy_of<MpiAllReduce>(),      strategy_of<ReduceBroadcastAllReduce>(),
      } {}

void Strategies::add(Strategy strategy) {
  require(strategy.name != nullptr && strategy.path_cost != nullptr && strategy.make != nullptr,
          "Strategies::add", "a strategy has a name, a cost and a maker");
  const std::string_view name = strategy.name;
  require(find(name) == nullptr && name != AutoAllReduce::kName, "Strategies::add",
          "no strategy has the name of another one");
  all_.push_back(std::move(strategy));
}

const Strategy* Strategies::find(std::string_view name) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [name](const auto& each) { return each.name == name; });
  return found == all_.end() ? nullptr : &*found;
}

const char* Strategies::first_with(bool Strategy::*trait) const {
  return std::find_if(all_.begin(), all_.end(), std::mem_fn(trait))->name;
}

Needs Strategies::needs_of(std::string_view name) const {
  const Strategy* strategy = find(name);
  return strategy == nullptr ? Needs::nothing : strategy->needs;
}

std::vector<std::string_view> Strategies::names() const {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : all_) names.emplace_back(strategy.name);
  names.emplace_back(AutoAllReduce::kName);
  return names;
}

std::unique_ptr<AllReduce> Strategies::make(std::string_view name, Transport& transport,
                                            const StrategyTable& table) const {
  if (name == AutoAllReduce::kName) return std::make_unique<AutoAllReduce>(transport, *this, table);
  const Strategy* strategy = find(name);
  if (strategy == nullptr) {
    throw ContractError(fmt::format("\"{}\" is no all-reduce strategy; known are: {}", name,
                                    fmt::join(names(), ", ")));
  }
  auto made = strategy->make(transport);
  require(made != nullptr && made->name() == name, "Strategies::make",
          "a strategy's name() is the one that it was added by");
  return made;
}

std::unique_ptr<AllReduce> make_all_reduce(std::string_view strategy, Transport& transport) {
  return Strategies().make(strategy, transport);
}

}  // namespace ringlet::comm
