// Strategies: the all-reduce strategies by name. Every rank makes the same one.
//
// A strategy is a class that says everything about itself, in a pair of files:
//
//   class Star final : public AllReduce {
//    public:
//     static constexpr const char* kName = "star";
//     static constexpr Needs kNeeds = Needs::nothing;                // of the transport
//     static PathCost path_cost(int ranks, double bytes);            // what `auto` picks by
//     static LevelCosts level_costs(int machines, int each, double bytes);    // see below
//     using AllReduce::AllReduce;
//     const char* name() const override { return kName; }
//     void run(Stream& stream, View data, ReduceOp op) override;
//     std::optional<std::int64_t> elements_sent(std::int64_t count) const override;
//   };
//
// A class says that it has a trait by a constant that is true:
//   kAddsAsShardTree   adds in the one binary tree over the ranks' numbers that exact mode needs
//   kNarrowsBetween    knows what goes between machines, and makes that narrow in run_narrow()
//
// level_costs is for worlds on several machines. Without it the whole path counts as between them:
// so it is for a strategy of which every step has a message between machines, and one for each. A
// strategy that goes another way over another link takes that link's costs, a const CostModel&, as
// the last argument.
//
// Ringlet's own are listed in strategies.cc. A program adds its own to an object, and hands that
// to the communicator; there is no global list:
//
//   Strategies strategies;
//   strategies.add<Star>();
//   Communicator communicator(transport, {.strategy = "star", .strategies = strategies});
#pragma once

#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/cost_model.h"
#include "comm/all_reduce/needs.h"
#include "comm/all_reduce/strategy_table.h"

namespace ringlet::comm {

/// What is known of a strategy by its name.
struct Strategy {
  const char* name;  ///< a string literal
  Needs needs;
  PathCostOf path_cost;
  MakeAllReduce make;                  ///< of objects with this name()
  LevelCostsOf level_costs = nullptr;  ///< null: path_cost, all of it between machines
  bool adds_as_shard_tree = false;
  bool narrows_between = false;

  /// level_costs, or what stands for it.
  LevelCosts costs_of_levels(int machines, int each, double bytes, const CostModel& link) const {
    if (level_costs != nullptr) return level_costs(machines, each, bytes, link);
    return {.between = path_cost(machines * each, bytes)};
  }
};

/// How long it takes over the transport, by its costs and the transport's round figures. Machines
/// of different sizes count as equal. 0 for one rank. `between`: how long what goes between
/// machines is, to what it is of the data's own type.
double predicted_seconds(const Strategy& strategy, const Transport& transport, double bytes,
                         double between = 1);

template <class T>
concept HasName = requires {
  { T::kName } -> std::convertible_to<const char*>;
};
template <class T>
concept HasNeeds = requires {
  { T::kNeeds } -> std::convertible_to<Needs>;
};
template <class T>
concept HasCost = requires {
  { T::path_cost(2, 1.0) } -> std::same_as<PathCost>;
};

template <class T>
concept HasLevelCosts = requires {
  { T::level_costs(2, 2, 1.0) } -> std::same_as<LevelCosts>;
};
template <class T>
concept HasLevelCostsByLink = requires(const CostModel& link) {
  { T::level_costs(2, 2, 1.0, link) } -> std::same_as<LevelCosts>;
};

/// What the class says of itself.
template <class T>
Strategy strategy_of() {
  static_assert(HasName<T>, "a strategy says its name: static constexpr const char* kName");
  static_assert(HasNeeds<T>, "a strategy says what it needs: static constexpr Needs kNeeds");
  static_assert(HasCost<T>,
                "a strategy says its cost: static PathCost path_cost(int ranks, double bytes)");
  static_assert(std::is_base_of_v<AllReduce, T> && std::is_constructible_v<T, Transport&>,
                "a strategy is an AllReduce that is made of a Transport&");
  Strategy strategy{T::kName, T::kNeeds, T::path_cost,
                    [](Transport& transport) { return std::make_unique<T>(transport); }};
  if constexpr (HasLevelCostsByLink<T>) {
    strategy.level_costs = T::level_costs;
  } else if constexpr (HasLevelCosts<T>) {
    strategy.level_costs = [](int machines, int each, double bytes, const CostModel&) {
      return T::level_costs(machines, each, bytes);
    };
  }
  strategy.adds_as_shard_tree = requires { requires T::kAddsAsShardTree; };
  strategy.narrows_between = requires { requires T::kNarrowsBetween; };
  return strategy;
}

class Strategies {
 public:
  /// Ringlet's own.
  Strategies();

  template <class T>
  void add() {
    add(strategy_of<T>());
  }
  /// For one that is made of more than a transport. Throws ContractError for a name that is taken,
  /// and where something is missing.
  void add(Strategy strategy);

  /// Null for a name that is not here, and for "auto", which is one of the others each time.
  const Strategy* find(std::string_view name) const;
  /// Whether that strategy has the trait: has(name, &Strategy::narrows_between).
  bool has(std::string_view name, bool Strategy::*trait) const {
    const Strategy* const strategy = find(name);
    return strategy != nullptr && strategy->*trait;
  }
  /// The first that has it. There is one.
  const char* first_with(bool Strategy::*trait) const;
  /// Nothing for such names.
  Needs needs_of(std::string_view name) const;
  const std::vector<Strategy>& all() const { return all_; }
  /// The names that make() knows: of all(), then "auto".
  std::vector<std::string_view> names() const;

  /// `table` is for "auto". Throws ContractError naming names() for any other name, and saying what
  /// is missing where the transport lacks what the strategy needs.
  std::unique_ptr<AllReduce> make(std::string_view name, Transport& transport,
                                  const StrategyTable& table = {}) const;

 private:
  std::vector<Strategy> all_;
};

/// One of Ringlet's own.
std::unique_ptr<AllReduce> make_all_reduce(std::string_view strategy, Transport& transport);

}  // namespace ringlet::comm
