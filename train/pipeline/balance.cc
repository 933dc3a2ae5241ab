#include "train/pipeline/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "train/pipeline/stage_table.h"

namespace ringlet::train {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::size_t at(int index) { return static_cast<std::size_t>(index); }

int count_of(const std::vector<UnitCost>& units) { return static_cast<int>(units.size()); }

/// Of the units [begin, end).
double seconds_of(const BalanceInput& input, int begin, int end) {
  double seconds = 0;
  for (int unit = begin; unit < end; ++unit) {
    const UnitCost& cost = input.units[at(unit)];
    seconds += cost.forward + cost.backward + cost.update;
  }
  if (input.transfer.empty()) return seconds;
  if (begin > 0) seconds += input.transfer[at(begin - 1)];
  if (end < count_of(input.units)) seconds += input.transfer[at(end - 1)];
  return seconds;
}

std::int64_t bytes_of(const BalanceInput& input, int stage, int begin, int end) {
  if (input.bytes) return input.bytes(stage, begin, end);
  const std::int64_t held = input.held.empty() ? 1 : input.held[at(stage)];
  std::int64_t bytes = 0;
  for (int unit = begin; unit < end; ++unit) {
    bytes += input.units[at(unit)].bytes + held * input.units[at(unit)].pass_bytes;
  }
  return bytes;
}

bool fits(const BalanceInput& input, int stage, int begin, int end) {
  return input.capacity.empty() || bytes_of(input, stage, begin, end) <= input.capacity[at(stage)];
}

/// Whether a stage may begin with `unit`, or, for n, end there.
bool may_cut(const BalanceInput& input, int unit) {
  if (unit == 0 || unit == count_of(input.units) || input.allowed.empty()) return true;
  return input.allowed[at(unit - 1)];
}

void require_numbers(std::size_t size, int wanted, const char* name) {
  if (size != 0 && size != at(std::max(wanted, 0))) {
    throw ContractError(fmt::format("balance(): {} has {} entries, not {}", name, size, wanted));
  }
}

void require_enough_units(const BalanceInput& input) {
  const int units = count_of(input.units);
  if (input.stages < 1) throw ContractError("balance(): there is at least one stage");
  if (input.stages > units) {
    throw ContractError(
        fmt::format("there are more stages ({}) than units ({})", input.stages, units));
  }
  int parts = 1;
  for (int unit = 1; unit < units; ++unit) parts += may_cut(input, unit) ? 1 : 0;
  if (input.stages > parts) {
    throw ContractError(fmt::format(
        "there are more stages ({}) than parts ({}) that the {} units fall into without a cut "
        "through what is fused",
        input.stages, parts, units));
  }
}

void require_seconds(double seconds, const std::string& whose) {
  if (std::isfinite(seconds) && seconds >= 0) return;
  throw ContractError(fmt::format(
      "balance(): {} takes {} seconds; times are finite, and not below 0", whose, seconds));
}

void require_times(const BalanceInput& input) {
  for (const UnitCost& unit : input.units) {
    for (const double seconds : {unit.forward, unit.backward, unit.update}) {
      require_seconds(seconds, unit.name.empty() ? "a unit" : unit.name);
    }
  }
  for (const double seconds : input.transfer) require_seconds(seconds, "a transfer");
}

void require_sound(const BalanceInput& input) {
  const int units = count_of(input.units);
  require_numbers(input.transfer.size(), units - 1, "transfer");
  require_numbers(input.allowed.size(), units - 1, "allowed");
  require_numbers(input.capacity.size(), input.stages, "capacity");
  require_numbers(input.held.size(), input.stages, "held");
  require_enough_units(input);
  require_times(input);
}

/// What it costs that a stage has the units [begin, end).
using StageCost = std::function<double(int stage, int begin, int end)>;

/// best[stage][a]: the smallest largest cost with which this stage and those behind it take the
/// units from a on.
using Best = std::vector<std::vector<double>>;

Best best_of(const BalanceInput& input, const StageCost& cost) {
  const int units = count_of(input.units), stages = input.stages;
  Best best(at(stages + 1), std::vector<double>(at(units + 1), kNever));
  best[at(stages)][at(units)] = -kNever;  // nothing is left, and costs nothing
  for (int stage = stages - 1; stage >= 0; --stage) {
    for (int begin = 0; begin < units; ++begin) {
      for (int end = begin + 1; end <= units; ++end) {
        const double rest = best[at(stage + 1)][at(end)];
        if (rest == kNever || !may_cut(input, end)) continue;
        double& least = best[at(stage)][at(begin)];
        least = std::min(least, std::max(rest, cost(stage, begin, end)));
      }
    }
  }
  return best;
}

/// The earliest cuts that cost no more than the best do; none where these cost kNever.
std::vector<int> earliest_cuts(const BalanceInput& input, const StageCost& cost) {
  const Best best = best_of(input, cost);
  const double least = best[0][0];
  std::vector<int> cuts;
  if (least == kNever) return cuts;
  for (int stage = 0, begin = 0; stage + 1 < input.stages; ++stage) {
    int end = begin + 1;
    while (!may_cut(input, end) || best[at(stage + 1)][at(end)] > least ||
           cost(stage, begin, end) > least) {
      ++end;
    }
    cuts.push_back(begin = end);
  }
  return cuts;
}

int begin_of(const std::vector<int>& cuts, int stage) {
  return stage == 0 ? 0 : cuts[at(stage - 1)];
}

int end_of(const BalanceInput& input, const std::vector<int>& cuts, int stage) {
  return stage + 1 == input.stages ? count_of(input.units) : cuts[at(stage)];
}

/// "layer3.0 .. fc"
std::string units_in_words(const BalanceInput& input, int begin, int end) {
  const auto name = [&](int unit) {
    const std::string& own = input.units[at(unit)].name;
    return own.empty() ? fmt::format("unit {}", unit) : own;
  };
  if (end - begin == 1) return name(begin);
  // A unit's own name may be that of a range.
  constexpr std::string_view kTo = " .. ";
  const std::string first = name(begin), last = name(end - 1);
  const std::size_t to = last.rfind(kTo);
  return fmt::format("{}{}{}", first.substr(0, first.find(kTo)), kTo,
                     to == std::string::npos ? last : last.substr(to + kTo.size()));
}

/// Cuts so that the stage which lacks most lacks as little as can be, and names it.
[[noreturn]] void throw_too_little_memory(const BalanceInput& input) {
  const StageCost lacking = [&](int stage, int begin, int end) {
    return static_cast<double>(bytes_of(input, stage, begin, end) - input.capacity[at(stage)]);
  };
  const std::vector<int> cuts = earliest_cuts(input, lacking);
  int worst = 0;
  double most = -kNever;
  for (int stage = 0; stage < input.stages; ++stage) {
    const double lacks = lacking(stage, begin_of(cuts, stage), end_of(input, cuts, stage));
    if (lacks > most) worst = stage;
    most = std::max(most, lacks);
  }
  const int begin = begin_of(cuts, worst), end = end_of(input, cuts, worst);
  throw ContractError(fmt::format(
      "{} stages do not fit the memory: at best stage {} ({}) needs {}, and its device has {}; "
      "more stages or a smaller batch need less",
      input.stages, worst, units_in_words(input, begin, end),
      bytes_in_words(bytes_of(input, worst, begin, end)),
      bytes_in_words(input.capacity[at(worst)])));
}

}  // namespace

std::vector<int> balance(const BalanceInput& input) {
  require_sound(input);
  const StageCost seconds = [&](int stage, int begin, int end) {
    return fits(input, stage, begin, end) ? seconds_of(input, begin, end) : kNever;
  };
  std::vector<int> cuts = earliest_cuts(input, seconds);
  const bool found = static_cast<int>(cuts.size()) + 1 == input.stages;
  const int last = cuts.empty() ? 0 : cuts.back();
  if (!found || !fits(input, input.stages - 1, last, count_of(input.units))) {
    throw_too_little_memory(input);
  }
  return cuts;
}

std::vector<double> stage_seconds(const BalanceInput& input, const std::vector<int>& cuts) {
  std::vector<double> seconds;
  for (int stage = 0; stage < input.stages; ++stage) {
    seconds.push_back(seconds_of(input, begin_of(cuts, stage), end_of(input, cuts, stage)));
  }
  return seconds;
}

std::vector<std::int64_t> stage_bytes(const BalanceInput& input, const std::vector<int>& cuts) {
  std::vector<std::int64_t> bytes;
  for (int stage = 0; stage < input.stages; ++stage) {
    bytes.push_back(bytes_of(input, stage, begin_of(cuts, stage), end_of(input, cuts, stage)));
  }
  return bytes;
}

}  // namespace ringlet::train
