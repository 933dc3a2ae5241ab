#include "train/recipe/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "train/recipe/options.h"

namespace ringlet::train {

namespace {

constexpr double kRisingPart = 0.3;
constexpr double kStartDivisor = 25;
constexpr double kEndDivisor = 1e4;
constexpr double kHighMomentum = 0.95;
constexpr double kLowMomentum = 0.85;

struct Named {
  ScheduleKind kind;
  const char* name;
};
constexpr std::array kSchedules{
    Named{ScheduleKind::constant, "constant"}, Named{ScheduleKind::step, "step"},
    Named{ScheduleKind::cosine, "cosine"}, Named{ScheduleKind::polynomial, "polynomial"},
    Named{ScheduleKind::one_cycle, "one-cycle"}};

/// From `start` (fraction 0) to `end` (fraction 1) along half a cosine.
double cosine(double start, double end, double fraction) {
  constexpr double kPi = 3.14159265358979323846;
  return end + (start - end) / 2 * (1 + std::cos(kPi * fraction));
}

Rates one_cycle(const Schedule& schedule, std::int64_t step) {
  const auto planned = static_cast<double>(schedule.planned_steps);
  const double peak =
      kRisingPart * planned - 1;  // the step with the largest rate, as PyTorch has it
  const double last = planned - 1;
  const double start_lr = schedule.lr / kStartDivisor, end_lr = start_lr / kEndDivisor;
  const auto now = static_cast<double>(step);
  const bool rising = now <= peak;
  const double from = rising ? 0 : peak, to = rising ? peak : last;
  const double fraction = to > from ? std::clamp((now - from) / (to - from), 0.0, 1.0) : 1.0;
  Rates rates{0, schedule.momentum, step};
  rates.lr =
      rising ? cosine(start_lr, schedule.lr, fraction) : cosine(schedule.lr, end_lr, fraction);
  if (schedule.cycle_momentum) {
    rates.momentum = rising ? cosine(kHighMomentum, kLowMomentum, fraction)
                            : cosine(kLowMomentum, kHighMomentum, fraction);
  }
  return rates;
}

/// The rate of step `t` of `steps`, counted from the end of the warm-up.
double rate_after_warm_up(const Schedule& schedule, std::int64_t t, std::int64_t steps) {
  const double part =
      steps > 0 ? static_cast<double>(std::min(t, steps)) / static_cast<double>(steps) : 1;
  switch (schedule.kind) {
    case ScheduleKind::step:
      return schedule.lr * std::pow(schedule.gamma, static_cast<double>(t / schedule.period));
    case ScheduleKind::cosine:
      return cosine(schedule.lr, schedule.min_lr, part);
    case ScheduleKind::polynomial:
      return schedule.min_lr + (schedule.lr - schedule.min_lr) * std::pow(1 - part, schedule.power);
    default:
      return schedule.lr;
  }
}

}  // namespace

const char* name_of(ScheduleKind kind) {
  return kSchedules.at(static_cast<std::size_t>(kind)).name;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Named& schedule : kSchedules) names.emplace_back(schedule.name);
  return names;
}

ScheduleKind parse_schedule(std::string_view name) {
  for (const Named& schedule : kSchedules) {
    if (name == schedule.name) return schedule.kind;
  }
  throw ContractError(fmt::format("there is no schedule '{}'; the schedules are {}", name,
                                  fmt::join(schedule_names(), ", ")));
}

Rates Schedule::at(std::int64_t step) const {
  if (kind == ScheduleKind::one_cycle) return one_cycle(*this, step);
  if (step < warmup_steps) {
    const double part = static_cast<double>(step) / static_cast<double>(warmup_steps);
    return {lr * (warmup_start + (1 - warmup_start) * part), momentum, step};
  }
  return {rate_after_warm_up(*this, step - warmup_steps, planned_steps - warmup_steps), momentum,
          step};
}

void check_schedule(const Recipe& recipe) {
  const ScheduleKind kind = recipe.schedule;
  const bool falls_to = kind == ScheduleKind::cosine || kind == ScheduleKind::polynomial;
  const Recipe none;
  require(recipe.warmup_epochs == 0 || kind != ScheduleKind::one_cycle, "--warmup-epochs",
          "one-cycle warms up by itself; leave it out, or take another --schedule");
  require(recipe.warmup_epochs == 0 || recipe.warmup_epochs < recipe.epochs, "--warmup-epochs",
          "the warm-up would be as long as the run; take fewer, or more --epochs");
  require(recipe.warmup_epochs > 0 || recipe.warmup_start == none.warmup_start, "--warmup-start",
          "is the start of a warm-up; give --warmup-epochs as well, or leave it out");
  require(kind == ScheduleKind::step || recipe.step_epochs == none.step_epochs, "--step-epochs",
          "is for --schedule step; leave it out");
  require(kind == ScheduleKind::step || recipe.gamma == none.gamma, "--gamma",
          "is for --schedule step; leave it out");
  require(kind == ScheduleKind::polynomial || recipe.power == none.power, "--power",
          "is for --schedule polynomial; leave it out");
  require(falls_to || recipe.min_lr == 0, "--min-lr",
          "is for --schedule cosine and polynomial; leave it out");
  require(recipe.min_lr <= recipe.lr, "--min-lr", "must not be above --lr");
}

Schedule schedule_of(const Recipe& recipe, std::int64_t steps_per_epoch) {
  const auto steps = static_cast<double>(steps_per_epoch);
  return {.kind = recipe.schedule,
          .lr = recipe.lr,
          .momentum = recipe.momentum,
          .cycle_momentum = recipe.cycle_momentum,
          .planned_steps = steps_per_epoch * recipe.epochs,
          .warmup_steps = std::llround(recipe.warmup_epochs * steps),
          .warmup_start = recipe.warmup_start,
          .period = steps_per_epoch * recipe.step_epochs,
          .gamma = recipe.gamma,
          .power = recipe.power,
          .min_lr = recipe.min_lr};
}

}  // namespace ringlet::train
