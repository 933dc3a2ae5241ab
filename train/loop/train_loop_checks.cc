// What a TrainLoop does between steps: replicas are compared, and the model is tested, verified and
// saved.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/stopwatch.h"
#include "train/loop/best_test.h"
#include "train/loop/diagnose.h"
#include "train/loop/train_loop.h"

namespace ringlet::train {

/// Replicas that go apart mostly do so at once, so they are compared after the first step. What is
/// evaluated, or saved (save_if_due), is compared before.
bool TrainLoop::wants_check(bool epoch_end) const {
  const int every = setup_.options.execution.check_replicas;
  if (every == 0) return false;
  return epoch_end || progress_.step == setup_.first_step + 1 ||
         (every > 0 && progress_.step % every == 0);
}

void TrainLoop::check_replicas() {
  if (communicator_.size() == 1 || checked_step_ == progress_.step) return;
  checked_step_ = progress_.step;
  note("comparing replicas");
  const std::string after = " after step " + std::to_string(progress_.step);
  Stream& stream = device_.communication();
  device_.compute().synchronize();
  const nn::Parameters& parameters = replica().parameters();
  const std::int64_t replicated = parameters.plan().replicated();
  communicator_.require_identical(stream, parameters.values().slice(0, replicated),
                                  "parameters" + after);
  for (const StateArena& arena : optimizer().state()) {
    if (arena.is_of_rows()) continue;  // they are on one rank
    const View numbers = arena.numbers;
    communicator_.require_identical(
        stream, arena.is_of_buffers() ? numbers : numbers.slice(0, replicated), arena.name + after);
  }
  if (const LossScale* scale = step_.loss_scale()) {
    communicator_.require_identical(stream, scale->state(), "loss scale" + after);
  }
  if (parameters.registry().buffers.empty()) return;
  communicator_.require_identical(stream, parameters.buffers(), "buffers" + after);
  communicator_.require_identical(stream, parameters.counters(), "counters" + after);
}

/// Evaluates, and reports the epoch, or what was learnt of it. False where somebody asked to stop
/// before the end: the state says then that this is still to be done.
bool TrainLoop::test(const EndedEpoch& ended) {
  note("evaluation");
  step_.swap_average();
  const Tested tested = evaluator_.run(setup_.stop_requested);
  step_.swap_average();
  stop_agreed_ = stop_agreed_ || tested.stop_wished;
  if (tested.failed) {
    save_if_due(true);
    end_with_failure(tested.failure, once_mended("begins with this test"));
  }
  if (!tested.result) return false;
  // Running statistics of a few steps can be too small for a deep model's first tests, whose losses
  // are then none. That passes; where a test had a loss before, it is a training that diverges.
  const bool is_finite = std::isfinite(tested.result->loss);
  if (had_finite_test_ || progress_.best_test || progress_.step >= setup_.planned_steps) {
    require_finite_test(*tested.result, good_loss_, setup_, progress_.step);
  }
  had_finite_test_ = had_finite_test_ || is_finite;
  result_.test = *tested.result;
  const bool ends_epoch = progress_.untested.has_value();  // else it goes on, in another run
  if (ends_epoch && is_finite && note_best_test(setup_, result_.test, progress_)) save_best();
  reporter_.epoch_done(progress_, ended, result_.test);
  if (!ends_epoch) return true;
  progress_ = {.step = progress_.step,
               .unverified = progress_.unverified,
               .best = progress_.best,
               .best_test = progress_.best_test,
               .lengths = std::move(progress_.lengths),
               .stopped = progress_.stopped};
  keep_strategies();
  saver_.note_tested(progress_);
  return true;
}

void TrainLoop::save_best() {
  if (setup_.options.files.out.empty()) return;
  check_before_saving();
  saver_.save_best_model(step_, progress_);
}

bool TrainLoop::wants_verification() const {
  if (setup_.verification.empty()) return false;
  const std::int64_t every = setup_.options.recipe.verify_every;
  const std::int64_t steps = every > 0 ? every : setup_.partition.steps_per_epoch();
  return progress_.step % steps == 0 || progress_.step == setup_.last_step;
}

/// Measures on pairs, reports it, and keeps the best model. False where somebody asked to stop
/// before the end, as test().
bool TrainLoop::verify() {
  note("verification");
  const Stopwatch watch;
  step_.swap_average();
  VerificationOutcome outcome = verifier_.run(progress_.step, setup_.stop_requested);
  step_.swap_average();
  stop_agreed_ = stop_agreed_ || outcome.stop_wished;
  if (outcome.failed) {
    save_if_due(true);
    end_with_failure(outcome.failure, once_mended("begins with this verification"));
  }
  if (outcome.sets.empty()) return false;
  if (note_best(outcome.sets) && !setup_.options.files.out.empty()) {
    check_before_saving();
    saver_.save_best(step_, progress_);
  }
  progress_.unverified = false;
  reporter_.verified(progress_, outcome.sets, watch.seconds());
  saver_.note_tested(progress_);
  return true;
}

/// Whether the first set was never told so well.
bool TrainLoop::note_best(const std::vector<Verified>& sets) {
  std::vector<BestVerification> best;
  bool first_is_new = false;
  for (const Verified& set : sets) {
    const auto former = std::ranges::find(progress_.best, set.name, &BestVerification::set);
    const double accuracy = set.figures.grid.mean;
    const bool is_new = former == progress_.best.end() || accuracy > former->accuracy;
    if (best.empty()) first_is_new = is_new;
    best.push_back(is_new ? BestVerification{set.name, accuracy, progress_.step} : *former);
  }
  progress_.best = std::move(best);
  return first_is_new;
}

/// `resumed` is what a run does that is resumed.
std::string TrainLoop::once_mended(const char* resumed) const {
  return fmt::format(
      "; what was learnt up to step {} is saved: once that is mended, --resume {} {}",
      progress_.step, setup_.options.files.out.string(), resumed);
}

/// A training picture that was damaged before the start can be mended no more: the run is known by
/// its bytes.
std::string TrainLoop::once_training_is_mended() const {
  if (!setup_.data.train->photographs()) return once_mended("goes on");
  return fmt::format(
      "; what was learnt up to step {0} is saved: once the file is what it was at the start, "
      "--resume {1} goes on; if it was damaged then, --init {1}/state --skip-broken begins anew "
      "from there",
      progress_.step, setup_.options.files.out.string());
}

/// A rank could not read its samples: that one has the `failure`, the others none. What was learnt
/// is saved.
void TrainLoop::end_with_failure(const std::exception_ptr& failure, const std::string& remedy) {
  if (!failure) ranks_.world.barrier(device_.communication(), "the end of the run");  // throws
  const std::filesystem::path& out = setup_.options.files.out;
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    const std::string message = message_of_current_exception();
    if (out.empty()) throw Error(message + "; nothing was saved (--no-out)");
    throw Error(message + remedy);
  }
}

void TrainLoop::save_if_due(bool at_end) {
  if (setup_.options.files.out.empty() || (!at_end && !saver_.due(progress_.step))) return;
  check_before_saving();
  saver_.save(step_, progress_, reporter_);
}

void TrainLoop::check_before_saving() {
  if (setup_.options.execution.check_replicas != 0) check_replicas();
}

}  // namespace ringlet::train
