#include "train/setup/run_length.h"

#include <fmt/format.h>

#include "base/error.h"

namespace ringlet::train {

namespace {

bool has_another_length(const RunSetup& setup) {
  return setup.resumed && setup.resumed->recipe.epochs != setup.options.recipe.epochs;
}

}  // namespace

void require_length(const Recipe& recipe, const StateJson& former, std::int64_t steps_per_epoch) {
  const std::int64_t done = former.progress.step;
  if (recipe.epochs == former.recipe.epochs || recipe.epochs * steps_per_epoch >= done) return;
  throw ContractError(fmt::format(
      "--epochs {}: the run has done {} steps of {} an epoch, which are more; take {} or more",
      recipe.epochs, done, steps_per_epoch, (done + steps_per_epoch - 1) / steps_per_epoch));
}

std::string length_in_words(const RunSetup& setup) {
  if (!has_another_length(setup)) return {};
  const StateJson& former = *setup.resumed;
  const Schedule& schedule = setup.schedule;
  const std::string text =
      fmt::format("{} epochs instead of {}: the schedule ({}) is ", setup.options.recipe.epochs,
                  former.recipe.epochs, name_of(schedule.schedule));
  if (!depends_on_length(schedule.schedule)) return text + "continued";
  Schedule before = schedule;
  before.planned_steps = former.recipe.epochs * schedule.steps_per_epoch;
  const std::int64_t next =
      former.progress.step - (former.loss_scale ? former.loss_scale->skips : 0);
  return text +
         fmt::format("{} to that, lr {:.4g} in the next step instead of {:.4g}",
                     schedule.planned_steps > before.planned_steps ? "stretched" : "squeezed",
                     schedule.at(next).lr, before.at(next).lr);
}

void note_length(const RunSetup& setup, Progress& progress) {
  if (!has_another_length(setup)) return;
  progress.lengths.push_back({progress.step, setup.resumed->recipe.epochs});
}

}  // namespace ringlet::train
