#include "train/recipe/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

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
constexpr std::array kRateSchedules{
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
  switch (schedule.schedule) {
    case ScheduleKind::step: {
      const std::int64_t passed = t / (schedule.steps_per_epoch * schedule.step_epochs);
      return schedule.lr * std::pow(schedule.gamma, static_cast<double>(passed));
    }
    case ScheduleKind::cosine:
      return cosine(schedule.lr, schedule.min_lr, part);
    case ScheduleKind::polynomial:
      return schedule.min_lr + (schedule.lr - schedule.min_lr) * std::pow(1 - part, schedule.power);
    default:
      return schedule.lr;
  }
}

Rates rates_at(const Schedule& schedule, std::int64_t step) {
  if (schedule.schedule == ScheduleKind::one_cycle) return one_cycle(schedule, step);
  const std::int64_t warmup_steps =
      std::llround(schedule.warmup_epochs * static_cast<double>(schedule.steps_per_epoch));
  if (step < warmup_steps) {
    const double part = static_cast<double>(step) / static_cast<double>(warmup_steps);
    const double start = schedule.warmup_start;
    return {schedule.lr * (start + (1 - start) * part), schedule.momentum, step};
  }
  return {rate_after_warm_up(schedule, step - warmup_steps, schedule.planned_steps - warmup_steps),
          schedule.momentum, step};
}

}  // namespace

const char* name_of(ScheduleKind kind) {
  return kRateSchedules.at(static_cast<std::size_t>(kind)).name;
}

bool depends_on_length(ScheduleKind kind) {
  return kind != ScheduleKind::constant && kind != ScheduleKind::step;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Named& schedule : kRateSchedules) names.emplace_back(schedule.name);
  return names;
}

ScheduleKind parse_schedule(std::string_view name) {
  for (const Named& schedule : kRateSchedules) {
    if (name == schedule.name) return schedule.kind;
  }
  throw ContractError(fmt::format("there is no schedule '{}'; the schedules are {}", name,
                                  fmt::join(schedule_names(), ", ")));
}

Rates Schedule::at(std::int64_t step) const {
  Rates rates = rates_at(*this, step);
  rates.epochs = static_cast<double>(step) / static_cast<double>(steps_per_epoch);
  return rates;
}

std::vector<Option<RateSpec>> rate_options() {
  return {
      option("lr", &RateSpec::lr,
             {.help = "learning rate; with one-cycle its maximum",
              .range = from(0),
              .for_photographs = "0.1 where they are few",
              .since_first_states = true}),
      option("momentum", &RateSpec::momentum,
             {.help = "momentum of SGD",
              .range = from(0).to(1),
              .since_first_states = true,
              .only = {.key = "optimizer",
                       .values = {"sgd"},
                       .refusal = "is SGD's; AdamW has --beta1, leave it out"}}),
  };
}

std::vector<Option<ScheduleSpec>> schedule_options() {
  using Spec = ScheduleSpec;
  const auto only = [](std::vector<std::string> kinds, const char* refusal = nullptr) {
    return OnlyWith{.key = "schedule", .values = std::move(kinds), .refusal = refusal};
  };
  OnlyWith cycle = only({"one-cycle"}, "only --schedule one-cycle has a cycle; leave it out");
  cycle.of_all_runs = false;
  const OnlyWith warmed_up =
      only({"constant", "step", "cosine", "polynomial"},
           "one-cycle warms up by itself; leave it out, or take another --schedule");
  return {
      named_option<Spec>(
          "schedule", [](const Spec& spec) { return name_of(spec.schedule); },
          [](Spec& spec, const std::string& name) { spec.schedule = parse_schedule(name); },
          {.help = "of the learning rate; one-cycle is PyTorch's OneCycleLR",
           .choices = schedule_names,
           .since_first_states = true}),
      option("cycle_momentum", &Spec::cycle_momentum,
             {.help = "one-cycle: momentum goes 0.95 -> 0.85 -> 0.95 while the rate rises and "
                      "falls",
              .since_first_states = true,
              .only = cycle}),
      option("warmup_epochs", &Spec::warmup_epochs,
             {.help = "the rate rises for so many epochs before the schedule begins",
              .range = from(0).to(std::numeric_limits<std::int32_t>::max()),
              .only = warmed_up}),
      option("warmup_start", &Spec::warmup_start,
             {.help = "share of the rate with which the warm-up begins",
              .range = from(0).to(1),
              .only = warmed_up}),
      option("step_epochs", &Spec::step_epochs,
             {.help = "step: epochs between two changes of the rate",
              .range = from(1),
              .only = only({"step"})}),
      option("gamma", &Spec::gamma,
             {.help = "step: what the rate is multiplied by",
              .range = from(0),
              .only = only({"step"})}),
      option("power", &Spec::power,
             {.help = "polynomial: its power", .range = from(0), .only = only({"polynomial"})}),
      option("min_lr", &Spec::min_lr,
             {.help = "cosine, polynomial: the rate to which they fall",
              .range = from(0),
              .only = only({"cosine", "polynomial"})}),
  };
}

void check_schedule(const RateSpec& rates, const ScheduleSpec& spec, int epochs) {
  require(spec.warmup_epochs == 0 || spec.warmup_epochs < epochs, "--warmup-epochs",
          "the warm-up would be as long as the run; take fewer, or more --epochs");
  require(spec.warmup_epochs > 0 || spec.warmup_start == ScheduleSpec().warmup_start,
          "--warmup-start",
          "is the start of a warm-up; give --warmup-epochs as well, or leave it out");
  require(spec.min_lr <= rates.lr, "--min-lr", "must not be above --lr");
}

}  // namespace ringlet::train
