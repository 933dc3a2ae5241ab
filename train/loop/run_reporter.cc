#include "train/loop/run_reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/median.h"
#include "base/processors.h"
#include "base/unsigned_nan.h"
#include "train/loop/centres_in_words.h"
#include "train/setup/run_length.h"
#include "train/telemetry/console.h"

namespace ringlet::train {

namespace {

constexpr std::size_t kStepsKept = 1024;

std::vector<RunListener*> none_of_them_null(std::span<RunListener* const> listeners) {
  for (const RunListener* listener : listeners) {
    require(listener != nullptr, "train", "a listener is null; leave it out");
  }
  return {listeners.begin(), listeners.end()};
}

/// "lfw (6000 pairs), pairs (300 pairs), every 2000 steps"
std::string verification_in_words(const RunSetup& setup) {
  std::string text;
  for (const VerificationSet& set : setup.verification) {
    text += fmt::format("{} ({} pairs), ", set.name, set.pairs->size());
  }
  const int every = setup.options.recipe.verify_every;
  if (text.empty() || every == 0) return text.empty() ? "" : text + "each epoch";
  return text + (every == 1 ? "each step" : fmt::format("every {} steps", every));
}

/// "2 by 1f1b, 8 micro-batches of 16: bubble 11 %, predicted 1.74x of one device, 57.0 ms a step;
/// naive 1.00x; costs measured together in 0.9 s".
std::string stages_in_words(const StagesSetup& stages) {
  const std::string costs =
      stages.forecast.measured
          ? fmt::format("measured{} in {:.1f} s", stages.forecast.together ? " together" : "",
                        stages.measured_seconds)
          : "planned";
  return fmt::format("{} by {}; costs {}", stages.count(), in_words(stages.forecast), costs);
}

/// Why steps are no graphs although that is wished for, as the end of a sentence; else "".
std::string why_no_graph(const RunSetup& setup, const comm::Transport& world) {
  const Execution& execution = setup.options.execution;
  const bool on_gpus = execution.devices.front().kind == DeviceKind::cuda || mixes_kinds(execution);
  if (setup.stages && on_gpus && execution.graph) return "since the model is in stages";
  return world.why_no_captures();
}

/// Threads that a rank keeps busy: its own, those that read samples, and that of its sums.
int threads_of_rank(const Execution& execution) {
  return execution.threads + std::max(execution.workers, 0) + (execution.overlap ? 1 : 0);
}

}  // namespace

RunReporter::RunReporter(const RunSetup& setup, std::span<RunListener* const> listeners)
    : setup_(setup),
      listeners_(none_of_them_null(listeners)),
      wants_grad_norm_(
          std::any_of(listeners.begin(), listeners.end(),
                      [](const RunListener* listener) { return listener->wants_grad_norm(); })) {
  if (setup.stages) step_seconds_.reserve(kStepsKept);
}

void RunReporter::started(const Ranks& ranks, const nn::Parameters& parameters,
                          const std::string& centres, const std::vector<Bucket>& buckets,
                          const StrategyPick& pick) {
  if (listeners_.empty()) return;
  const Recipe& recipe = setup_.options.recipe;
  const comm::Communicator& communicator = ranks.replicas;
  const comm::Transport& world = ranks.world.transport();
  StartReport report{.options = setup_.options,
                     .plan = setup_.stages ? setup_.stages->plan : parameters.plan(),
                     .buckets = buckets,
                     .data = setup_.data.train->description(),
                     .verification = verification_in_words(setup_),
                     .steps_per_epoch = setup_.partition.steps_per_epoch(),
                     .planned_steps = setup_.planned_steps,
                     .first_step = setup_.first_step,
                     .length = length_in_words(setup_),
                     .shards = setup_.partition.shards,
                     .samples_per_pass = setup_.replica.max_train_batch,
                     .layout = setup_.replica.layout,
                     .sync = strategies_in_words(communicator, buckets),
                     .pick = pick,
                     .sync_plan = plan_sync(communicator, buckets, setup_.options.execution),
                     .why_no_graph = why_no_graph(setup_, world),
                     .path = world.path(),
                     .hosts = world.hosts()};
  if (recipe.has_margin()) {
    report.centres = centres;
    report.low_scale = low_scale_in_words(recipe.scale, setup_.replica.input.outputs);
  }
  const Execution& execution = setup_.options.execution;
  in_turns_ = world.world().machine_size * threads_of_rank(execution) > usable_processors();
  report.ranks = setup_.replicas;
  if (setup_.stages) {
    report.ranks *= setup_.stages->count();
    report.stages = stages_in_words(*setup_.stages);
    report.forecast = &setup_.stages->forecast;
  }
  for (int replica = 0; replica < setup_.replicas; ++replica) {
    report.batch_of_replica.push_back(setup_.partition.rank_range(0, replica).size());
  }
  for (RunListener* listener : listeners_) listener->started(report);
}

void RunReporter::graph_refused(const std::string& why) {
  for (RunListener* listener : listeners_) listener->graph_refused(why);
}

void RunReporter::step_begins(std::int64_t samples, bool alone) {
  if (trained_samples_ == 0) {
    epoch_watch_ = Stopwatch();
    if (!listeners_.empty()) epoch_interference_.emplace();
  }
  if (alone) report_watch_ = Stopwatch();
  trained_samples_ += samples;
}

void RunReporter::step_done(std::int64_t step, const StepSums& sums, double lr,
                            const PhaseSeconds& phases) {
  StepReport report;
  report.step = step;
  report.epoch = setup_.partition.epoch_of(step - 1) + 1;
  report.step_in_epoch = (step - 1) % setup_.partition.steps_per_epoch() + 1;
  report.loss = unsigned_nan(sums.loss / static_cast<double>(sums.samples));
  report.lr = lr;
  report.samples = sums.samples;
  report.seconds = report_watch_.seconds();
  report.awaited = sums.awaited;
  if (step_seconds_.size() < step_seconds_.capacity()) step_seconds_.push_back(report.seconds);
  report.data_seconds = phases.data - data_at_report_;
  data_at_report_ = phases.data;
  if (wants_grad_norm_) report.grad_norm = sums.grad_norm;
  if (setup_.options.recipe.precision == Precision::f16) {
    report.skipped = sums.skipped();
    report.loss_scale = sums.loss_scale;
  }
  for (RunListener* listener : listeners_) listener->step_done(report);
  look_at_core();
  report_watch_ = Stopwatch();
}

/// Twice a second. Where ranks take turns on a processor, a look tells of nothing.
void RunReporter::look_at_core() {
  constexpr double kApart = 0.5;  // seconds
  const bool on_processors = setup_.options.execution.devices.front().kind == DeviceKind::cpu;
  if (listeners_.empty() || !on_processors || in_turns_ || core_watch_.seconds() < kApart) return;
  core_.take(core_pace());
  core_watch_ = Stopwatch();
}

EndedEpoch RunReporter::end_epoch(const PhaseSeconds& phases) {
  const EndedEpoch ended{epoch_watch_.seconds(), trained_samples_, phases.since(phases_at_epoch_)};
  phases_at_epoch_ = phases;
  if (epoch_interference_ && trained_samples_ > 0) interference_ = epoch_interference_->seen();
  if (in_turns_) interference_.waited = 0;
  trained_samples_ = 0;
  return ended;
}

void RunReporter::epoch_done(const Progress& progress, const EndedEpoch& ended,
                             const Evaluation& test) {
  const auto a_second = [&ended](double amount) {  // nothing may be known of what was learnt before
    return ended.seconds > 0 ? amount / ended.seconds : 0;
  };
  EpochReport report{
      .epoch = setup_.partition.epoch_of(progress.step - 1) + 1,
      .step = progress.step,
      .train_loss = unsigned_nan(progress.epoch_loss / static_cast<double>(progress.epoch_samples)),
      .told = task_of(setup_.replica)->told_of_training(progress.epoch_told),
      .test = test,
      .seconds = ended.seconds,
      .samples_per_second = a_second(static_cast<double>(ended.samples)),
      .sync_share = a_second(ended.phases.sync),
      .phases = ended.phases,
      .best = progress.best_test,
      .is_best = progress.best_test && progress.best_test->step == progress.step};
  if (!stage_seconds_.empty() && ended.samples > 0) {
    report.stages =
        report_of(stage_seconds_, setup_.stages->count(), setup_.stages->forecast.step.bubble);
    report.stages->step_seconds = median_of(step_seconds_);
    if (setup_.stages->forecast.measured) {
      report.stages->predicted_step_seconds = setup_.stages->forecast.step.seconds;
    }
  }
  report.interference = std::exchange(interference_, {});
  report.core = std::exchange(core_, {});
  stage_seconds_.clear();
  step_seconds_.clear();
  for (RunListener* listener : listeners_) listener->epoch_done(report);
}

void RunReporter::verified(const Progress& progress, const std::vector<Verified>& sets,
                           double seconds) {
  const VerificationReport report{.epoch = setup_.partition.epoch_of(progress.step - 1) + 1,
                                  .step = progress.step,
                                  .sets = sets,
                                  .best = progress.best,
                                  .seconds = seconds};
  for (RunListener* listener : listeners_) listener->verified(report);
}

void RunReporter::saved(const std::string& path) {
  for (RunListener* listener : listeners_) listener->saved(path);
}

void RunReporter::ended(const GradientSync& sync) {
  for (RunListener* listener : listeners_) {
    if (sync.steps() == 0) break;
    const double waited = sync.waited_seconds() / static_cast<double>(sync.steps());
    listener->synchronised({sync.steps(), sync.median_seconds(), waited});
  }
  for (RunListener* listener : listeners_) listener->ended();
}

}  // namespace ringlet::train
