// Learning-rate schedules: pure functions of the step. They keep no state, so a resumed run needs
// to know its step and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/recipe/option.h"

namespace ringlet::train {

enum class ScheduleKind : std::uint8_t { constant, step, cosine, polynomial, one_cycle };

const char* name_of(ScheduleKind kind);  ///< "constant", ..., "one-cycle"
std::vector<std::string> schedule_names();
/// Throws ContractError naming the choices.
ScheduleKind parse_schedule(std::string_view name);

/// Where the rates begin.
struct RateSpec {
  double lr = 0.2;  ///< with one-cycle: the maximum
  double momentum = 0;

  bool operator==(const RateSpec&) const = default;
};

std::vector<Option<RateSpec>> rate_options();

/// Whether the rates of such a schedule depend on how many steps are planned: then a run that is
/// made longer stretches it.
bool depends_on_length(ScheduleKind kind);

/// How they change. See Schedule.
struct ScheduleSpec {
  ScheduleKind schedule = ScheduleKind::constant;
  bool cycle_momentum = false;  ///< one-cycle: momentum falls while the rate rises, as PyTorch's
  double warmup_epochs = 0;
  double warmup_start = 0.01;
  int step_epochs = 30;
  double gamma = 0.1;
  double power = 1;
  double min_lr = 0;

  bool operator==(const ScheduleSpec&) const = default;
};

std::vector<Option<ScheduleSpec>> schedule_options();

struct Rates {
  double lr = 0;
  double momentum = 0;
  std::int64_t step = 0;  ///< optimiser steps done before this one
  double epochs = 0;      ///< the same in epochs
};

/// The closed forms, t counting steps from 0 and T being the planned steps less those of warm-up:
///
///   constant     lr
///   step         lr * gamma^floor(t / steps of `step_epochs`)              torch's StepLR
///   cosine       min + (lr - min) * (1 + cos(pi * t / T)) / 2          CosineAnnealingLR(T, min)
///   polynomial   min + (lr - min) * (1 - t / T)^power                  PolynomialLR(T, power)
///   one_cycle    up along a cosine from lr / 25 in the first 30 % of the steps, then down along
///                another to lr / 25 / 10^4; with `cycle_momentum` the momentum (with AdamW beta1)
///                goes 0.95 -> 0.85 -> 0.95 meanwhile                   OneCycleLR
///
/// In the first `warmup_epochs` the rate rises along a line from warmup_start * lr, and t
/// starts behind them, as torch's SequentialLR of LinearLR and another has it. one_cycle warms up
/// by itself. Source of one_cycle: Smith and Topin, "Super-convergence", 2018.
struct Schedule : RateSpec, ScheduleSpec {
  std::int64_t planned_steps = 1;  ///< of the whole run, even if it is stopped earlier
  std::int64_t steps_per_epoch = 1;

  /// Rates of the optimiser step `step` = 0, 1, ..., planned_steps - 1.
  Rates at(std::int64_t step) const;
};

/// Throws ContractError naming the flag, where there can be no such schedule of `epochs`.
void check_schedule(const RateSpec& rates, const ScheduleSpec& spec, int epochs);

}  // namespace ringlet::train
