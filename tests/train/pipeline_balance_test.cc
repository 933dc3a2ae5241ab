// Where a model is cut into stages: the dynamic programme against every way to cut, with random
// costs, forbidden cuts and devices of limited memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "base/error.h"
#include "train/pipeline/balance.h"

namespace ringlet::train {
namespace {

/// Every way to cut n units into `stages`, in ascending order.
std::vector<std::vector<int>> all_cuts(int units, int stages) {
  std::vector<std::vector<int>> all;
  std::vector<int> cuts;
  const std::function<void(int)> extend = [&](int least) {
    if (static_cast<int>(cuts.size()) + 1 == stages) {
      all.push_back(cuts);
      return;
    }
    for (int cut = least; cut < units; ++cut) {
      cuts.push_back(cut);
      extend(cut + 1);
      cuts.pop_back();
    }
  };
  extend(1);
  return all;
}

/// The seconds and bytes of each stage, counted without what balance.cc counts them with.
struct CountedStage {
  double seconds = 0;
  std::int64_t bytes = 0;
};

std::vector<CountedStage> counted(const BalanceInput& input, const std::vector<int>& cuts) {
  std::vector<CountedStage> stages(1);
  for (std::size_t unit = 0; unit < input.units.size(); ++unit) {
    const bool cut =
        std::find(cuts.begin(), cuts.end(), static_cast<int>(unit)) != cuts.end() && unit > 0;
    if (cut) {
      const double transfer = input.transfer.empty() ? 0 : input.transfer[unit - 1];
      stages.back().seconds += transfer;
      stages.push_back({transfer, 0});
    }
    const UnitCost& cost = input.units[unit];
    const int held = input.held.empty() ? 1 : input.held[stages.size() - 1];
    stages.back().seconds += cost.forward + cost.backward + cost.update;
    stages.back().bytes += cost.bytes + held * cost.pass_bytes;
  }
  return stages;
}

bool possible(const BalanceInput& input, const std::vector<int>& cuts) {
  const std::vector<CountedStage> stages = counted(input, cuts);
  for (const int cut : cuts) {
    if (!input.allowed.empty() && !input.allowed[static_cast<std::size_t>(cut - 1)]) return false;
  }
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    if (!input.capacity.empty() && stages[stage].bytes > input.capacity[stage]) return false;
  }
  return true;
}

double slowest(const std::vector<CountedStage>& stages) {
  double most = 0;
  for (const CountedStage& stage : stages) most = std::max(most, stage.seconds);
  return most;
}

/// The first of the best by brute force; none where none is possible.
std::optional<std::vector<int>> best_by_trial(const BalanceInput& input) {
  std::optional<std::vector<int>> best;
  double least = 0;
  for (const auto& cuts : all_cuts(static_cast<int>(input.units.size()), input.stages)) {
    if (!possible(input, cuts)) continue;
    const double seconds = slowest(counted(input, cuts));
    if (best && seconds >= least) continue;
    best = cuts;
    least = seconds;
  }
  return best;
}

std::string outcome_of(const BalanceInput& input, std::vector<int>& cuts) {
  try {
    cuts = balance(input);
  } catch (const ContractError& error) {
    return error.what();
  }
  return "cut";
}

class RandomUnits {
 public:
  explicit RandomUnits(unsigned seed) : random_(seed) {}

  int number(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  /// Whole seconds: sums are exact, and there are ties.
  BalanceInput input(int units, int stages, bool forbidden, bool limited) {
    BalanceInput input{.stages = stages};
    for (int unit = 0; unit < units; ++unit) {
      input.units.push_back({.forward = double(number(0, 9)),
                             .backward = double(number(0, 19)),
                             .update = double(number(0, 3)),
                             .bytes = number(0, 50),
                             .pass_bytes = number(0, 50)});
      if (unit == 0) continue;
      input.transfer.push_back(number(0, 5));
      if (forbidden) input.allowed.push_back(number(0, 2) > 0);
    }
    for (int stage = 0; limited && stage < stages; ++stage) {
      input.held.push_back(stages - stage);
      input.capacity.push_back(number(100, 600));
    }
    return input;
  }

 private:
  std::mt19937 random_;
};

/// What happened, over all of a suite of random models.
struct Outcomes {
  int cut = 0, refused_memory = 0, refused_units = 0;
};

void compare_with_all_cuts(const BalanceInput& input, Outcomes& outcomes) {
  const std::optional<std::vector<int>> wanted = best_by_trial(input);
  std::vector<int> cuts;
  const std::string outcome = outcome_of(input, cuts);
  if (wanted) {
    EXPECT_EQ(outcome, "cut");
    EXPECT_EQ(cuts, *wanted);
    ++outcomes.cut;
    return;
  }
  BalanceInput unlimited = input;
  unlimited.capacity.clear();
  const bool memory = best_by_trial(unlimited).has_value();
  EXPECT_NE(outcome.find(memory ? "do not fit the memory" : "there are more stages"),
            std::string::npos)
      << outcome;
  ++(memory ? outcomes.refused_memory : outcomes.refused_units);
}

Outcomes compare_many(bool forbidden, bool limited) {
  Outcomes outcomes;
  RandomUnits random(7);
  for (int stages = 1; stages <= 5; ++stages) {
    for (int units = 1; units <= 9; ++units) {
      for (int trial = 0; trial < 20; ++trial) {
        SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(units) + " units, " +
                     std::to_string(trial));
        compare_with_all_cuts(random.input(units, stages, forbidden, limited), outcomes);
      }
    }
  }
  return outcomes;
}

TEST(Balance, IsTheBestOfAllCuts) {
  const Outcomes outcomes = compare_many(false, false);
  EXPECT_EQ(outcomes.cut, (5 * 9 - 10) * 20);
  EXPECT_EQ(outcomes.refused_units, 10 * 20);  // more stages than units
  EXPECT_EQ(outcomes.refused_memory, 0);
}

TEST(Balance, IsTheBestOfTheAllowedCuts) {
  const Outcomes outcomes = compare_many(true, false);
  EXPECT_GT(outcomes.cut, 300);
  EXPECT_GT(outcomes.refused_units, 220);
}

TEST(Balance, IsTheBestOfTheCutsThatFitTheMemory) {
  const Outcomes outcomes = compare_many(false, true);
  EXPECT_GT(outcomes.cut, 100);
  EXPECT_GT(outcomes.refused_memory, 100);
}

TEST(Balance, IsTheBestOfTheAllowedCutsThatFitTheMemory) {
  const Outcomes outcomes = compare_many(true, true);
  EXPECT_GT(outcomes.cut, 100);
  EXPECT_GT(outcomes.refused_memory, 100);
}

BalanceInput four_layers(int stages) {
  BalanceInput input{.stages = stages};
  for (const char* name : {"conv1", "layer1", "layer2", "fc"}) {
    input.units.push_back(
        {.name = name, .forward = 1, .backward = 2, .bytes = 100, .pass_bytes = 10});
  }
  return input;
}

TEST(Balance, CountsUpdatesTransfersAndHeldPasses) {
  BalanceInput input = four_layers(2);
  input.units[3].update = 4;
  input.transfer = {0, .5, 0};
  input.held = {2, 1};
  EXPECT_EQ(stage_seconds(input, {2}), (std::vector<double>{6.5, 10.5}));
  EXPECT_EQ(stage_bytes(input, {2}), (std::vector<std::int64_t>{240, 220}));
  EXPECT_EQ(balance(input), (std::vector<int>{3}));  // 9 and 7, against 6.5 and 10.5
  input.units[3].update = 0;
  EXPECT_EQ(balance(input), (std::vector<int>{2}));
  input.transfer = {0, 3.5, 0};
  EXPECT_EQ(balance(input), (std::vector<int>{1}));  // as good as 3, and earlier
}

std::string refusal_of_cut(const BalanceInput& input) {
  std::vector<int> cuts;
  return outcome_of(input, cuts);
}

TEST(Balance, RefusesMoreStagesThanThereAreParts) {
  EXPECT_EQ(refusal_of_cut(four_layers(5)), "there are more stages (5) than units (4)");
  BalanceInput fused = four_layers(3);
  fused.allowed = {false, true, false};
  EXPECT_EQ(refusal_of_cut(fused),
            "there are more stages (3) than parts (2) that the 4 units fall into without a cut "
            "through what is fused");
  fused.stages = 2;
  EXPECT_EQ(balance(fused), (std::vector<int>{2}));
}

TEST(Balance, NamesTheStageThatDoesNotFit) {
  BalanceInput input = four_layers(2);
  input.held = {2, 1};
  input.capacity = {240, 219};
  EXPECT_EQ(refusal_of_cut(input),
            "2 stages do not fit the memory: at best stage 1 (layer2 .. fc) needs 220 bytes, and "
            "its device has 219 bytes; more stages or a smaller batch need less");
  input.capacity = {240, 220};
  EXPECT_EQ(balance(input), (std::vector<int>{2}));
  input.units[1].name = "layer1.0 .. layer1.1";
  input.units[3].name = "flatten .. fc";
  input.capacity = {240, 219};
  EXPECT_NE(refusal_of_cut(input).find("stage 1 (layer2 .. fc) needs"), std::string::npos);
  BalanceInput one = four_layers(1);
  one.units.resize(1);
  one.capacity = {109};
  EXPECT_EQ(refusal_of_cut(one),
            "1 stages do not fit the memory: at best stage 0 (conv1) needs 110 bytes, and its "
            "device has 109 bytes; more stages or a smaller batch need less");
}

TEST(Balance, PrefersASlowerCutThatFits) {
  BalanceInput input = four_layers(2);
  input.capacity = {110, 1000};
  EXPECT_EQ(balance(input), (std::vector<int>{1}));
}

TEST(Balance, RefusesListsOfAnotherLength) {
  BalanceInput input = four_layers(2);
  input.transfer = {1};
  EXPECT_EQ(refusal_of_cut(input), "balance(): transfer has 1 entries, not 3");
  input = four_layers(2);
  input.allowed = {true};
  EXPECT_EQ(refusal_of_cut(input), "balance(): allowed has 1 entries, not 3");
  input = four_layers(2);
  input.capacity = {1};
  EXPECT_EQ(refusal_of_cut(input), "balance(): capacity has 1 entries, not 2");
  input = four_layers(2);
  input.held = {1};
  EXPECT_EQ(refusal_of_cut(input), "balance(): held has 1 entries, not 2");
  EXPECT_EQ(refusal_of_cut(four_layers(0)), "balance(): there is at least one stage");
}

TEST(Balance, RefusesTimesThatAreNone) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const double seconds : {kInfinite, std::nan(""), -1.0}) {
    BalanceInput input = four_layers(2);
    input.units[1].backward = seconds;
    EXPECT_NE(refusal_of_cut(input).find("balance(): layer1 takes "), std::string::npos)
        << refusal_of_cut(input);
    input = four_layers(2);
    input.transfer = {0, seconds, 0};
    EXPECT_NE(refusal_of_cut(input).find("balance(): a transfer takes "), std::string::npos);
  }
}

}  // namespace
}  // namespace ringlet::train
