#include "train/loop/train_loop.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/stopwatch.h"
#include "base/trace.h"
#include "train/batches/label_batches.h"
#include "train/loop/diagnose.h"
#include "train/loop/read_ahead.h"
#include "train/reports/failure.h"

namespace ringlet::train {

MicroBatch micro_batch(const Partition& partition, std::int64_t step, std::int64_t unit,
                       std::int64_t units, std::span<const std::int64_t> by_rank) {
  const std::int64_t in_shard = unit % partition.accumulate;
  std::int64_t world_samples = 0;
  for (int rank = 0; rank < partition.ranks && !partition.exact; ++rank) {
    world_samples += partition.unit(step, rank, unit).size();
  }
  return {.shard = static_cast<int>(unit / partition.accumulate),
          .first_of_shard = in_shard == 0,
          .last_of_shard = in_shard == partition.accumulate - 1,
          .last = unit + 1 == units,
          .world_samples = world_samples,
          .pass = static_cast<int>(unit),
          .samples_by_rank = by_rank};
}

TrainLoop::~TrainLoop() {
  drain(device_.communication());
  drain(device_.compute());
}

RunResult TrainLoop::run() {
  bool goes_on =
      !progress_.untested || test(*progress_.untested);  // the former run was ended there
  if (progress_.unverified) goes_on = goes_on && verify();
  while (goes_on && progress_.step < setup_.last_step && !progress_.stopped) goes_on = step();
  settle();
  const bool in_epoch = progress_.step % setup_.partition.steps_per_epoch() != 0;
  if (goes_on && in_epoch) {
    tell_stages();
    goes_on = test(progress_.earlier.value_or(EndedEpoch()));
  }
  result_.step = progress_.step;
  result_.finished = goes_on;
  result_.interrupted = !goes_on;
  result_.best = progress_.best_test;
  result_.stopped = progress_.stopped;
  save_if_due(true);
  reporter_.ended(step_.sync());
  return result_;
}

bool TrainLoop::step() {
  try {
    const std::int64_t samples = setup_.partition.step_range(progress_.step).size();
    begin_step(samples);
    if (setup_.steps_in_flight == 0) {  // a broken loss is found before the update
      compute_gradients();
      send_sums(samples);
      take_sums(0);
      step_.update();
    } else {
      graphs_.run(
          samples,
          [this] {
            compute_gradients();
            step_.update();
          },
          [this, samples] {  // alike on all ranks; one without samples does not know
            return samples >= communicator_.size() && step_.replica().tape().repeatable();
          },
          [this](bool is_new) { step_.graph_launched(is_new); },
          [this](const std::string& why) {
            batches_->repeat_step();
            reporter_.graph_refused(why);
          });
      send_sums(samples);
    }
    take_sums(static_cast<std::size_t>(setup_.steps_in_flight));
    report_settled();
    after_step();
    return !result_.interrupted;
  } catch (...) {
    step_.abandon();
    throw;
  }
}

/// A step that was skipped moves no schedule. Whether those in flight were is not known yet.
void TrainLoop::begin_step(std::int64_t samples) {
  if (ranks_.are_cut() && !stage_watch_) stage_watch_.emplace();
  const int rank = communicator_.rank();
  const std::int64_t newest = progress_.step - step_.skips();
  const std::int64_t open = step_.scales_loss() ? std::ssize(pending_) : 0;
  rates_.clear();
  for (std::int64_t step = newest - open; step <= newest; ++step) {
    rates_.push_back(setup_.schedule.at(step));
  }
  reporter_.step_begins(samples, pending_.empty());
  weight_ = weight_of_step(setup_, progress_.step);
  const std::int64_t own =  // which each stage of a replica has, and the last one counts
      ranks_.is_last() ? setup_.partition.rank_range(progress_.step, rank).size() : 0;
  step_.begin_with_one_of(rates_, samples, own, setup_.stop_requested() || fails_soon(), weight_);
  if (step_.samples_rows()) list_rows(progress_.step);
  batches_->begin_step(setup_.partition.units(rank));
}

/// Labels are in memory, whoever reads the pictures.
void TrainLoop::list_rows(std::int64_t step) {
  labels_of_step(setup_, step, labels_);
  step_.list_rows(step, labels_);
}

/// A sample that cannot be read is told of as a wish to stop, early enough that the steps before it
/// are made and saved.
bool TrainLoop::fails_soon() {
  if (!reads(setup_) || ranks_.stage() > 0) return false;
  const PhaseTimer timer(step_.phases().data, device_.compute().tracer(), "data");
  note("data loading");
  failure_ = batches_->failure_within(batches_in_sight(setup_, communicator_.rank()));
  return failure_ != nullptr;
}

void TrainLoop::compute_gradients() {
  for (std::size_t i = 0; i < samples_by_rank_.size(); ++i) {
    const auto of = std::div(static_cast<std::int64_t>(i), std::int64_t{communicator_.size()});
    samples_by_rank_[i] =
        setup_.partition.unit(progress_.step, static_cast<int>(of.rem), of.quot).size();
  }
  for (std::size_t k = 0; k < samples_.size(); ++k) {
    samples_[k] =
        setup_.partition.unit(progress_.step, communicator_.rank(), static_cast<std::int64_t>(k))
            .size();
  }
  for (std::size_t i = 0; i < program_.size(); ++i) {
    act(program_[i], link_ ? activities_[i] : nullptr);
  }
  if (link_) note("updating and reporting");
}

/// Of a cut model anybody may wait for this rank, along any axis.
void TrainLoop::note(const char* activity) {
  communicator_.set_activity(activity);
  if (!link_) return;
  ranks_.stages->set_activity(activity);
  ranks_.world.set_activity(activity);
}

void TrainLoop::act(const Action& action, const char* activity) {
  if (activity != nullptr) {
    note(activity);
    step_.name_passes(activity);
  }
  Tracer* const tracer = link_ ? device_.compute().tracer() : nullptr;  // of a cut model
  const std::string name = tracer != nullptr ? text_of(action) : std::string();
  const ScopedSpan span(tracer, name, kTracedActions);
  if (const auto* forward_of = std::get_if<Forward>(&action)) {
    forward(forward_of->micro_batch, activity);
  } else if (const auto* backward_of = std::get_if<Backward>(&action)) {
    step_.backward(backward_of->micro_batch % step_.replica().passes());
  } else if (const auto* move = std::get_if<Move>(&action)) {
    const PhaseTimer timer(step_.phases().sync);  // waiting for another stage
    const PhaseTimer of_neighbour(waits_of(*move));
    link_->run(*move, samples_);
  } else {
    const PhaseTimer timer(stage_seconds_.sums);
    step_.finish_gradients();
  }
}

double& TrainLoop::waits_of(const Move& move) {
  const int peer = move.in ? move.in->peer : move.out->peer;
  return peer < ranks_.stage() ? stage_seconds_.before : stage_seconds_.behind;
}

/// What each rank's thread did in the epoch that has ended. A GPU's does not know. A run that has
/// made no step of it has nothing to tell.
void TrainLoop::tell_stages() {
  if (!stage_watch_) return;
  const PhaseSeconds phases = step_.phases().since(phases_told_);
  phases_told_ = step_.phases();
  StageSeconds mine = std::exchange(stage_seconds_, {});
  mine.busy = phases.forward + phases.backward;
  mine.data = phases.data;
  mine.all = stage_watch_->seconds();
  stage_watch_.reset();
  const bool knows = device_.compute().in_order_with_host();
  std::vector<StageSeconds> ranks;
  for (const std::string& text : ranks_.world.gather_text(
           device_.communication(), knows ? to_text(mine) : "", "what the stages did")) {
    if (text.empty()) return;
    ranks.push_back(stage_seconds_of(text));
  }
  reporter_.stages_took(std::move(ranks));
}

void TrainLoop::forward(std::int64_t unit, const char* activity) {
  const std::int64_t units = setup_.partition.units(communicator_.rank());
  const data::Batch& batch = next_batch();
  if (activity != nullptr) note(activity);
  step_.forward(batch, micro_batch(setup_.partition, progress_.step, unit, units, samples_by_rank_),
                batches_->position(), static_cast<int>(unit % step_.replica().passes()));
}

const data::Batch& TrainLoop::next_batch() {
  const PhaseTimer timer(step_.phases().data, device_.compute().tracer(), "data");
  note("data loading");
  const data::Batch* batch = batches_->next();
  require(batch != nullptr, "TrainLoop::step", "the run's last step is done");
  return *batch;
}

void TrainLoop::send_sums(std::int64_t samples) {
  step_.send_sums();
  ++progress_.step;
  pending_.push_back({progress_.step, samples, weight_});
}

void TrainLoop::take_sums(std::size_t in_flight) {
  while (pending_.size() > in_flight) {
    Pending& step = pending_.front();
    step.lr = setup_.schedule.at(step.step - 1 - step_.skips()).lr;
    step.sums = step_.take_sums();
    step.sums.loss *= static_cast<double>(step.samples) / step.weight;
    check_sums(step);
    if (std::isfinite(step.sums.loss)) {  // that of a skipped step may not be
      progress_.epoch_loss += step.sums.loss;
      progress_.epoch_samples += step.samples;
      good_loss_ = {step.sums.loss / static_cast<double>(step.samples), step.step};
      for (std::size_t i = 0; i < kTold; ++i) {
        const double told = step.sums.told[i];
        if (std::isfinite(told)) progress_.epoch_told[i] += told;
      }
    }
    stop_agreed_ = stop_agreed_ || step.sums.stop_wishes > 0;
    settled_.push_back(step);
    pending_.erase(pending_.begin());
  }
}

void TrainLoop::check_sums(const Pending& step) {
  const StepSums& sums = step.sums;
  const std::int64_t index = step.step - 1;
  require(sums.samples == step.samples, "step",
          "the ranks' samples do not add up to the global batch");
  if (sums.skipped()) {
    if (sums.skips_in_row >= LossScale::kMostSkips) throw_many_skips(sums, setup_, index);
    return;
  }
  if (!std::isfinite(sums.loss)) {
    if (step_.samples_rows()) list_rows(index);  // later steps may have listed theirs
    const FirstBroken found =
        find_first_nonfinite(step_.replica(), setup_, ranks_, index, step_.axis(),
                             step_.world_statistics(), link_.get());
    const auto findings = ranks_.world.gather_text(device_.communication(), to_text(found),
                                                   "search for broken numbers");
    throw_nonfinite_loss(sums.loss, good_loss_, setup_, index, findings);
  }
  if (step_.sync().narrows() && !std::isfinite(sums.grad_norm)) {
    throw_overflown_gradient(sums.loss / static_cast<double>(sums.samples), setup_, index);
  }
  if (step_.clips() && !std::isfinite(sums.grad_norm)) {
    throw_nonfinite_gradient(sums.grad_norm, broken_gradient(), setup_, index);
  }
}

/// Of rows that are cut, any rank may have the broken ones.
std::string TrainLoop::broken_gradient() {
  std::string mine = find_nonfinite_gradient(step_.replica());
  if (!step_.is_sharded() && !ranks_.are_cut()) return mine;
  auto all = ranks_.world.gather_text(device_.communication(), mine, "search for broken gradients");
  if (ranks_.are_cut()) std::ranges::reverse(all);  // backward begins with the last stage
  for (const std::string& found : all) {
    if (!found.empty()) return found;
  }
  return {};
}

void TrainLoop::settle() {
  take_sums(0);
  report_settled();
}

void TrainLoop::report_settled() {
  for (const Pending& step : settled_) {
    reporter_.step_done(step.step, step.sums, step.lr, step_.phases());
  }
  settled_.clear();
}

HostState TrainLoop::collect() { return whole_ ? whole_->collect(step_) : step_.download_state(); }

void TrainLoop::after_step() {
  const bool epoch_end = progress_.step % setup_.partition.steps_per_epoch() == 0;
  const bool check = wants_check(epoch_end);
  const bool verifies = wants_verification();
  if (epoch_end || check || verifies || saver_.due(progress_.step) || stop_agreed_) {
    settle();  // these want every number so far
  }
  if (check) check_replicas();
  const bool last = progress_.step == setup_.last_step;
  if (epoch_end || last || stop_agreed_) {
    const EndedEpoch whole =
        progress_.earlier.value_or(EndedEpoch()) + reporter_.end_epoch(step_.phases());
    (epoch_end ? progress_.untested : progress_.earlier) = whole;
  }
  if (epoch_end) {
    progress_.earlier.reset();
    tell_stages();
  }
  progress_.unverified = verifies;
  save_if_due(stop_agreed_ && !last);  // before the test, which takes its time, and may fail
  const bool tested = (!epoch_end || test(*progress_.untested)) && (!verifies || verify());
  result_.interrupted = !tested || (stop_agreed_ && !last && !progress_.stopped);
  if (!result_.interrupted) return;
  save_if_due(true);
  if (reads(setup_)) end_if_broken();
}

/// Whether it is for this that the run was interrupted, no rank but one knows.
void TrainLoop::end_if_broken() {
  const auto failures = ranks_.world.gather_text(device_.communication(), failure_ ? "failed" : "",
                                                 "whether samples could be read");
  const bool failed = std::ranges::any_of(failures, [](const auto& text) { return !text.empty(); });
  if (failed) end_with_failure(failure_, once_training_is_mended());
}

}  // namespace ringlet::train
