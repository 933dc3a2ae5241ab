#include "train/optimizers/schedule.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/error.h"

namespace ringlet::train {

namespace {

constexpr double kRisingPart = 0.3;
constexpr double kStartDivisor = 25;
constexpr double kEndDivisor = 1e4;
constexpr double kHighMomentum = 0.95;
constexpr double kLowMomentum = 0.85;

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
  Rates rates{0, schedule.momentum};
  rates.lr =
      rising ? cosine(start_lr, schedule.lr, fraction) : cosine(schedule.lr, end_lr, fraction);
  if (schedule.cycle_momentum) {
    rates.momentum = rising ? cosine(kHighMomentum, kLowMomentum, fraction)
                            : cosine(kLowMomentum, kHighMomentum, fraction);
  }
  return rates;
}

}  // namespace

const char* name_of(ScheduleKind kind) {
  return kind == ScheduleKind::constant ? "constant" : "one-cycle";
}

ScheduleKind parse_schedule(std::string_view name) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::one_cycle}) {
    if (name == name_of(kind)) return kind;
  }
  throw ContractError("there is no schedule '" + std::string(name) +
                      "'; the schedules are constant and one-cycle");
}

Rates Schedule::at(std::int64_t step) const {
  return kind == ScheduleKind::constant ? Rates{lr, momentum} : one_cycle(*this, step);
}

}  // namespace ringlet::train
