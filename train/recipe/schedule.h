// Learning-rate schedules: pure functions of the step. They keep no state, so a resumed run needs
// to know its step and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::train {

struct Recipe;  // train/recipe/options.h

enum class ScheduleKind : std::uint8_t { constant, step, cosine, polynomial, one_cycle };

const char* name_of(ScheduleKind kind);  ///< "constant", ..., "one-cycle"
std::vector<std::string> schedule_names();
/// Throws ContractError naming the choices.
ScheduleKind parse_schedule(std::string_view name);

struct Rates {
  double lr = 0;
  double momentum = 0;
  std::int64_t step = 0;  ///< optimiser steps done before this one
};

/// The closed forms, t counting steps from 0 and T being the planned steps less those of warm-up:
///
///   constant     lr
///   step         lr * gamma^floor(t / period)                          torch's StepLR
///   cosine       min + (lr - min) * (1 + cos(pi * t / T)) / 2          CosineAnnealingLR(T, min)
///   polynomial   min + (lr - min) * (1 - t / T)^power                  PolynomialLR(T, power)
///   one_cycle    up along a cosine from lr / 25 in the first 30 % of the steps, then down along
///                another to lr / 25 / 10^4; with `cycle_momentum` the momentum (with AdamW beta1)
///                goes 0.95 -> 0.85 -> 0.95 meanwhile                   OneCycleLR
///
/// In the first `warmup_steps` steps the rate rises along a line from warmup_start * lr, and t
/// starts behind them, as torch's SequentialLR of LinearLR and another has it. one_cycle warms up
/// by itself. Source of one_cycle: Smith and Topin, "Super-convergence", 2018.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double lr = 0.1;  ///< the maximum
  double momentum = 0;
  bool cycle_momentum = false;
  std::int64_t planned_steps = 1;  ///< of the whole run, even if it is stopped earlier
  std::int64_t warmup_steps = 0;
  double warmup_start = 0.01;
  std::int64_t period = 1;  ///< of `step`, in steps
  double gamma = 0.1;
  double power = 1;
  double min_lr = 0;

  /// Rates of the optimiser step `step` = 0, 1, ..., planned_steps - 1.
  Rates at(std::int64_t step) const;
};

/// Throws ContractError naming the flag, where the recipe's schedule cannot be, or has numbers that
/// it does not read.
void check_schedule(const Recipe& recipe);

/// The schedule of a recipe whose epochs have so many steps.
Schedule schedule_of(const Recipe& recipe, std::int64_t steps_per_epoch);

}  // namespace ringlet::train
