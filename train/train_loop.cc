#include "train/train_loop.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "train/diagnose.h"
#include "train/failure.h"
#include "train/plan_entries.h"
#include "train/stopwatch.h"

namespace ringlet::train {

namespace {

/// What rides behind the gradients; sums over the ranks.
enum Statistic : std::int64_t { kLossSum = 0, kSamples = 1, kStopWishes = 2 };

data::BatchSchedule schedule_of(const RunSetup& setup, int rank) {
  return [&setup, rank, units = setup.partition.units(rank)](
             std::int64_t k) -> std::optional<data::BatchRequest> {
    const std::int64_t step = setup.first_step + k / units;
    if (step >= setup.last_step) return {};
    return setup.partition.unit(step, rank, k % units);
  };
}

data::LoaderOptions loader_options(const RunSetup& setup) {
  data::LoaderOptions options = setup.loader;
  options.max_batch = setup.replica.max_train_batch;
  return options;
}

/// Adds the time of its life to a phase, and shows it in the trace where it has a name.
class PhaseTimer {
 public:
  PhaseTimer(double& seconds, Tracer* tracer, const char* name)
      : seconds_(seconds), span_(name == nullptr ? nullptr : tracer, name ? name : "", "phase") {}
  ~PhaseTimer() { seconds_ += watch_.seconds(); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  double& seconds_;
  Stopwatch watch_;
  ScopedSpan span_;
};

}  // namespace

TrainLoop::TrainLoop(const RunSetup& setup, Device& device, comm::Communicator& communicator,
                     std::span<RunListener* const> listeners)
    : setup_(setup),
      device_(device),
      communicator_(communicator),
      listeners_(listeners.begin(), listeners.end()),
      replica_(device, setup.replica),
      tree_(setup.partition.exact
                ? static_cast<int>(setup.partition.shards_of(communicator.rank()).size())
                : 1),
      sync_(device, communicator, replica_.parameters(), tree_,
            {setup.options.execution.bucket_kb, setup.options.execution.overlap}),
      evaluator_(replica_, communicator, setup.data.test, setup.loader, kEvaluationBatch),
      loader_(setup.data.train,
              data::Sampler(setup.data.train->size(), setup.options.recipe.seed,
                            setup.options.recipe.shuffle),
              schedule_of(setup, communicator.rank()), loader_options(setup)) {
  communicator_.set_activity("starting");
  communicator_.require_equal(
      device_.communication(),
      plan_entries(setup, replica_.plan(), sync_.buckets(), communicator_.strategy()));
  load_start();
  announce();
}

void TrainLoop::load_start() {
  nn::Parameters& parameters = replica_.parameters();
  parameters.initialize(setup_.options.recipe.seed);
  const View velocity = replica_.optimizer().velocity();
  if (communicator_.rank() == 0) {
    if (setup_.resumed) {
      upload(device_, load_state(*setup_.resumed, parameters.registry()), parameters, velocity);
    } else if (!setup_.options.files.init.empty()) {
      upload(device_, load_model(setup_.options.files.init, parameters.registry()), parameters, {});
    }
  }
  Stream& stream = device_.communication();
  device_.compute().synchronize();
  communicator_.broadcast(stream, 0, parameters.values(), "parameters");
  communicator_.broadcast(stream, 0, velocity, "optimiser state");
  communicator_.broadcast(stream, 0, parameters.buffers(), "buffers");
  stream.synchronize();
  if (setup_.resumed) progress_ = setup_.resumed->progress;
}

void TrainLoop::announce() {
  StartReport report{.options = setup_.options,
                     .plan = replica_.plan(),
                     .buckets = sync_.buckets(),
                     .data = setup_.data.train->description(),
                     .steps_per_epoch = setup_.partition.steps_per_epoch(),
                     .planned_steps = setup_.planned_steps,
                     .first_step = setup_.first_step,
                     .shards = setup_.partition.shards,
                     .samples_per_pass = setup_.replica.max_train_batch,
                     .layout = setup_.replica.layout,
                     .sync = communicator_.strategy()};
  for (int rank = 0; rank < setup_.ranks; ++rank) {
    report.batch_of_rank.push_back(setup_.partition.rank_range(0, rank).size());
  }
  for (RunListener* listener : listeners_) listener->started(report);
}

RunResult TrainLoop::run() {
  while (progress_.step < setup_.last_step && step()) {
  }
  result_.step = progress_.step;
  result_.finished = progress_.step == setup_.last_step;
  if (result_.finished && progress_.epoch_samples > 0) end_epoch();
  save_if_due(true);
  return result_;
}

bool TrainLoop::step() {
  try {
    return run_step();
  } catch (...) {
    // Collectives that are under way read this replica's memory: everybody must let go of it
    // before it is freed.
    communicator_.abort(message_of_current_exception());
    drain(device_.communication());
    throw;
  }
}

bool TrainLoop::run_step() {
  const Stopwatch watch;
  if (trained_samples_ == 0) epoch_watch_ = Stopwatch();
  const bool stop_wished = setup_.stop_requested();
  const std::int64_t units = setup_.partition.units(communicator_.rank());
  for (std::int64_t unit = 0; unit < units; ++unit) run_unit(unit, unit + 1 == units, stop_wished);

  Tracer* tracer = device_.compute().tracer();
  const double waited = sync_.waited_seconds();
  {
    const ScopedSpan span(tracer, "wait for gradients", "phase");
    communicator_.set_activity("waiting for gradients");
    sync_.finish();
  }
  phases_.sync += sync_.waited_seconds() - waited;

  std::array<float, 3> sums{};
  copy_to_host(device_.compute(), replica_.parameters().statistics().slice(0, 3), sums.data());
  const std::int64_t samples = setup_.partition.step_range(progress_.step).size();
  require(static_cast<std::int64_t>(sums[kSamples]) == samples, "step",
          "the ranks' samples do not add up to the global batch");
  check_loss(static_cast<double>(sums[kLossSum]));

  const Rates rates = setup_.schedule.at(progress_.step);
  {
    const PhaseTimer timer(phases_.update, tracer, "update");
    replica_.update(rates);
  }
  ++progress_.step;
  progress_.epoch_loss += static_cast<double>(sums[kLossSum]);
  progress_.epoch_samples += samples;
  trained_samples_ += samples;
  report_step(static_cast<double>(sums[kLossSum]), rates.lr, samples, watch.seconds());
  after_step(sums[kStopWishes] > 0);
  return !result_.interrupted;
}

void TrainLoop::run_unit(std::int64_t unit, bool last, bool stop_wished) {
  const Partition& partition = setup_.partition;
  const int shard = static_cast<int>(unit / partition.accumulate);
  const bool first_of_shard = unit % partition.accumulate == 0;
  const bool last_of_shard = unit % partition.accumulate == partition.accumulate - 1;
  const int arena = ShardTree::arena_of(shard);
  Stream& compute = device_.compute();

  const data::Batch* batch = nullptr;
  {
    const PhaseTimer timer(phases_.data, compute.tracer(), "data");
    communicator_.set_activity("data loading");
    batch = loader_.next();
  }
  require(batch != nullptr, "TrainLoop::step", "the run's last step is done");
  communicator_.set_activity("forward and backward");
  if (first_of_shard) {
    replica_.parameters().use_gradient_arena(arena);
    fill(compute, 0, replica_.parameters().statistics(arena));
  }
  {
    const PhaseTimer timer(phases_.forward, nullptr, nullptr);
    replica_.forward(*batch);
    replica_.add_loss_to(replica_.parameters().statistics(arena).slice(kLossSum, kLossSum + 1));
  }
  if (last) {
    write_counts(arena, stop_wished);
    sync_.begin_step();
  }
  {
    const PhaseTimer timer(phases_.backward, nullptr, nullptr);
    const double waited = sync_.waited_seconds();
    const std::int64_t samples = partition.step_range(progress_.step).size();
    replica_.backward(samples, {.accumulate = !first_of_shard, .last = last}, &sync_);
    phases_.sync += sync_.waited_seconds() - waited;
    phases_.backward -= sync_.waited_seconds() - waited;
  }
  if (last_of_shard && !last) tree_.merge(compute, replica_.parameters(), shard);
}

void TrainLoop::write_counts(int arena, bool stop_wished) {
  const auto mine = setup_.partition.rank_range(progress_.step, communicator_.rank()).size();
  const std::array<float, 2> counts{static_cast<float>(mine), stop_wished ? 1.0F : 0.0F};
  copy_from_host(device_.compute(), counts.data(),
                 replica_.parameters().statistics(arena).slice(kSamples, kStopWishes + 1));
}

void TrainLoop::check_loss(double loss) {
  if (std::isfinite(loss)) return;
  const std::string found =
      find_first_nonfinite(replica_, setup_, communicator_.rank(), progress_.step);
  const auto findings =
      communicator_.gather_text(device_.communication(), found, "search for broken numbers");
  throw_nonfinite_loss(loss, setup_, progress_.step, findings);
}

void TrainLoop::report_step(double loss_sum, double lr, std::int64_t samples, double seconds) {
  if (listeners_.empty()) return;
  StepReport report;
  report.step = progress_.step;
  report.epoch = setup_.partition.epoch_of(progress_.step - 1) + 1;
  report.step_in_epoch = (progress_.step - 1) % setup_.partition.steps_per_epoch() + 1;
  report.loss = loss_sum / static_cast<double>(samples);
  report.lr = lr;
  report.samples = samples;
  report.seconds = seconds;
  for (RunListener* listener : listeners_) listener->step_done(report);
}

void TrainLoop::after_step(bool stop) {
  const int every = setup_.options.execution.check_replicas;
  if (every > 0 && progress_.step % every == 0) {
    device_.compute().synchronize();
    communicator_.require_identical(device_.communication(), replica_.parameters().values(),
                                    "parameters after step " + std::to_string(progress_.step));
  }
  result_.interrupted = stop && progress_.step < setup_.last_step;
  if (progress_.step % setup_.partition.steps_per_epoch() == 0) end_epoch();
  save_if_due(result_.interrupted);
}

void TrainLoop::end_epoch() {
  EpochReport report;
  report.seconds = epoch_watch_.seconds();
  communicator_.set_activity("evaluation");
  result_.test = report.test = evaluator_.run();
  report.epoch = setup_.partition.epoch_of(progress_.step - 1) + 1;
  report.train_loss = progress_.epoch_loss / static_cast<double>(progress_.epoch_samples);
  report.samples_per_second = static_cast<double>(trained_samples_) / report.seconds;
  report.sync_share = phases_.since(phases_at_epoch_).sync / report.seconds;
  for (RunListener* listener : listeners_) listener->epoch_done(report);
  const bool whole = progress_.step % setup_.partition.steps_per_epoch() == 0;
  if (whole) progress_ = {.step = progress_.step};
  phases_at_epoch_ = phases_;
  trained_samples_ = 0;
}

void TrainLoop::save_if_due(bool at_end) {
  const Files& files = setup_.options.files;
  if (files.out.empty() || communicator_.rank() != 0) return;
  const bool epoch_end = progress_.step % setup_.partition.steps_per_epoch() == 0;
  const bool due = files.save_every > 0 ? progress_.step % files.save_every == 0 : epoch_end;
  const bool finished = progress_.step == setup_.last_step;
  if ((due || at_end || finished) && saved_step_ != progress_.step) save(finished);
}

void TrainLoop::save(bool finished) {
  const Files& files = setup_.options.files;
  const nn::Parameters& parameters = replica_.parameters();
  communicator_.set_activity("saving");
  const HostState state = download(device_, parameters, replica_.optimizer().velocity());
  require_finite(state, parameters.registry(), progress_.step);
  train::save_state(files.out, parameters.registry(), state, setup_.options.recipe, progress_,
                    setup_.data.train->hash());
  saved_step_ = progress_.step;
  for (RunListener* listener : listeners_) listener->saved((files.out / "state").string());
  if (!finished) return;
  save_model(files.out / "model.safetensors", parameters.registry(), state);
  for (RunListener* listener : listeners_) {
    listener->saved((files.out / "model.safetensors").string());
  }
}

}  // namespace ringlet::train
