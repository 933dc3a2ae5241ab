// Learning-rate schedules: pure functions of the step.
#pragma once

#include <cstdint>
#include <string_view>

namespace ringlet::train {

enum class ScheduleKind : std::uint8_t { constant, one_cycle };

const char* name_of(ScheduleKind kind);  ///< "constant", "one-cycle"
/// Throws ContractError naming the choices.
ScheduleKind parse_schedule(std::string_view name);

struct Rates {
  double lr = 0;
  double momentum = 0;
};

/// `one_cycle` equals torch.optim.lr_scheduler.OneCycleLR with its defaults: in the first 30 % of
/// the steps the rate rises along a cosine from lr / 25 to lr, then it falls along another to
/// lr / 25 / 10^4; with `cycle_momentum` the momentum goes 0.95 -> 0.85 -> 0.95 meanwhile.
/// Source: Smith and Topin, "Super-convergence", 2018.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double lr = 0.1;  ///< of one-cycle: the maximum
  double momentum = 0;
  bool cycle_momentum = false;
  std::int64_t planned_steps = 1;  ///< of the whole run, even if it is stopped earlier

  /// Rates of the optimiser step `step` = 0, 1, ..., planned_steps - 1.
  Rates at(std::int64_t step) const;
};

}  // namespace ringlet::train
