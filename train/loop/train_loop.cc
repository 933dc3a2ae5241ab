#include "train/loop/train_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/l2_norm.h"
#include "train/failure.h"
#include "train/sync/plan_entries.h"
#include "train/telemetry/diagnose.h"
#include "train/telemetry/stopwatch.h"

namespace ringlet::train {

namespace {

/// Places of the statistics behind the gradients: sums over the ranks, then what a rank computes of
/// the summed gradient for itself.
enum Statistic : std::int64_t { kLossSum = 0, kSamples = 1, kStopWishes = 2, kGradNorm = 3 };

View statistic(const nn::Parameters& parameters, Statistic which, int arena = 0) {
  return parameters.statistics(arena).slice(which, which + 1);
}

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
      wants_grad_norm_(
          std::any_of(listeners.begin(), listeners.end(),
                      [](const RunListener* listener) { return listener->wants_grad_norm(); })),
      replica_(device, setup.replica, &communicator.allocator(device)),
      optimizer_(make_optimizer(device, replica_.parameters(), setup.options.recipe,
                                setup.options.make_optimizer)),
      tree_(setup.partition.exact
                ? static_cast<int>(setup.partition.shards_of(communicator.rank()).size())
                : 1),
      sync_(device, communicator, replica_.parameters(), tree_,
            {.bucket_kb = setup.options.execution.bucket_kb,
             .overlap = setup.options.execution.overlap,
             .grad_dtype = setup.options.recipe.grad_dtype,
             .first_bucket_kb = setup.options.execution.first_bucket_kb}),
      evaluator_(replica_, communicator, setup.data.test, setup.loader, kEvaluationBatch),
      batches_(make_batch_source(
          device, setup.data.train, schedule_of(setup, communicator.rank()),
          {loader_options(setup), setup.options.recipe.seed, setup.options.recipe.shuffle,
           setup.partition.units(communicator.rank())})),
      graphs_(device.compute(),
              setup.options.execution.graph && communicator.size() == 1 && batches_->capturable()),
      inputs_(device),
      statistics_(device, nn::Parameters::kStatistics * size_of(DType::f32),
                  setup.steps_in_flight + 1) {
  communicator_.set_activity("starting");
  auto entries = plan_entries(setup, replica_.plan(), sync_.buckets(),
                              strategies_in_words(communicator_, sync_.buckets()));
  entries.emplace_back("the optimiser's state",
                       fmt::format("{}", fmt::join(names_of(optimizer_->state()), ", ")));
  communicator_.require_equal(device_.communication(), entries);
  load_start();
  announce();
}

TrainLoop::~TrainLoop() {
  drain(device_.communication());
  drain(device_.compute());
}

void TrainLoop::load_start() {
  nn::Parameters& parameters = replica_.parameters();
  parameters.initialize(setup_.options.recipe.seed);
  const auto state = optimizer_->state();
  if (communicator_.rank() == 0) {
    if (setup_.resumed) {
      upload(device_, load_state(*setup_.resumed, parameters.registry(), names_of(state)),
             parameters, state);
    } else if (!setup_.options.files.init.empty()) {
      upload(device_, load_model(setup_.options.files.init, parameters.registry()), parameters, {});
    }
  }
  Stream& stream = device_.communication();
  device_.compute().synchronize();
  communicator_.broadcast(stream, 0, parameters.values(), "parameters");
  for (const StateArena& arena : state) {
    communicator_.broadcast(stream, 0, arena.numbers, "optimiser state");
  }
  communicator_.broadcast(stream, 0, parameters.buffers(), "buffers");
  stream.synchronize();
  communicator_.require_alive();
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
                     .sync = strategies_in_words(communicator_, sync_.buckets())};
  if (listeners_.empty()) return;
  report.sync_plan = plan_sync(communicator_, sync_.buckets(), setup_.options.execution);
  for (int rank = 0; rank < setup_.ranks; ++rank) {
    report.batch_of_rank.push_back(setup_.partition.rank_range(0, rank).size());
  }
  for (RunListener* listener : listeners_) listener->started(report);
}

RunResult TrainLoop::run() {
  while (progress_.step < setup_.last_step && step()) {
  }
  settle();
  result_.step = progress_.step;
  result_.finished = progress_.step == setup_.last_step;
  if (result_.finished && progress_.epoch_samples > 0) end_epoch();
  save_if_due(true);
  report_sync();
  for (RunListener* listener : listeners_) listener->ended();
  return result_;
}

void TrainLoop::report_sync() {
  if (sync_.steps() == 0) return;
  const double waited = sync_.waited_seconds() / static_cast<double>(sync_.steps());
  const SyncReport report{sync_.steps(), sync_.median_seconds(), waited};
  for (RunListener* listener : listeners_) listener->synchronised(report);
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
  if (trained_samples_ == 0) epoch_watch_ = Stopwatch();
  if (pending_.empty()) report_watch_ = Stopwatch();
  const std::int64_t samples = setup_.partition.step_range(progress_.step).size();
  const Rates rates = setup_.schedule.at(progress_.step);
  inputs_.upload(rates, samples,
                 setup_.partition.rank_range(progress_.step, communicator_.rank()).size(),
                 setup_.stop_requested());
  batches_->begin_step(setup_.partition.units(communicator_.rank()));
  if (setup_.steps_in_flight == 0) {  // a broken loss is found before the update
    compute_gradients();
    await_statistics(samples, rates.lr);
    take_statistics(0);
    update();
  } else {
    graphs_.run(
        samples,
        [this] {
          compute_gradients();
          update();
        },
        [this] { return replica_.tape().repeatable(); });
    await_statistics(samples, rates.lr);
  }
  take_statistics(static_cast<std::size_t>(setup_.steps_in_flight));
  report_settled();
  after_step();
  return !result_.interrupted;
}

void TrainLoop::await_statistics(std::int64_t samples, double lr) {
  statistics_.start(device_.compute(), replica_.parameters().statistics());
  ++progress_.step;
  trained_samples_ += samples;
  pending_.push_back({progress_.step, samples, lr});
}

void TrainLoop::update() {
  const PhaseTimer timer(phases_.update, device_.compute().tracer(), "update");
  optimizer_->step(inputs_.rates());
}

void TrainLoop::take_statistics(std::size_t in_flight) {
  while (pending_.size() > in_flight) {
    Pending& step = pending_.front();
    const auto* sums = static_cast<const float*>(statistics_.finish());
    communicator_.require_alive();  // else they may be no sums
    require(static_cast<std::int64_t>(sums[kSamples]) == step.samples, "step",
            "the ranks' samples do not add up to the global batch");
    step.loss_sum = static_cast<double>(sums[kLossSum]);
    step.grad_norm = static_cast<double>(sums[kGradNorm]);
    check_loss(step.loss_sum, step.step - 1);
    if (sync_.narrows() && !std::isfinite(step.grad_norm)) {
      throw_overflown_gradient(step.loss_sum / static_cast<double>(step.samples), setup_,
                               step.step - 1);
    }
    progress_.epoch_loss += step.loss_sum;
    progress_.epoch_samples += step.samples;
    stop_agreed_ = stop_agreed_ || sums[kStopWishes] > 0;
    settled_.push_back(step);
    pending_.erase(pending_.begin());
  }
}

void TrainLoop::settle() {
  take_statistics(0);
  report_settled();
}

void TrainLoop::report_settled() {
  for (const Pending& step : settled_) {
    report_step(step, report_watch_.seconds());
    report_watch_ = Stopwatch();
  }
  settled_.clear();
}

void TrainLoop::compute_gradients() {
  const std::int64_t units = setup_.partition.units(communicator_.rank());
  for (std::int64_t unit = 0; unit < units; ++unit) run_unit(unit, unit + 1 == units);

  Tracer* tracer = device_.compute().tracer();
  const double waited = sync_.waited_seconds();
  {
    const ScopedSpan span(tracer, "wait for gradients", "phase");
    communicator_.set_activity("waiting for gradients");
    sync_.finish();
  }
  phases_.sync += sync_.waited_seconds() - waited;
  if (wants_grad_norm_ || sync_.narrows()) {
    const nn::Parameters& parameters = replica_.parameters();
    l2_norm(device_.compute(), parameters.gradients().slice(0, parameters.plan().elements),
            statistic(parameters, kGradNorm));
  }
}

void TrainLoop::run_unit(std::int64_t unit, bool last) {
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
    batch = batches_->next();
  }
  require(batch != nullptr, "TrainLoop::step", "the run's last step is done");
  communicator_.set_activity("forward and backward");
  if (first_of_shard) {
    replica_.parameters().use_gradient_arena(arena);
    fill(compute, 0, replica_.parameters().statistics(arena));
  }
  {
    const PhaseTimer timer(phases_.forward, nullptr, nullptr);
    replica_.forward(*batch, batches_->position());
    replica_.add_loss_to(statistic(replica_.parameters(), kLossSum, arena));
  }
  if (last) {
    copy(compute, inputs_.counts(),
         replica_.parameters().statistics(arena).slice(kSamples, kStopWishes + 1));
    sync_.begin_step();
  }
  {
    const PhaseTimer timer(phases_.backward, nullptr, nullptr);
    const double waited = sync_.waited_seconds();
    replica_.backward(inputs_.loss_seed(), {.accumulate = !first_of_shard, .last = last}, &sync_);
    phases_.sync += sync_.waited_seconds() - waited;
    phases_.backward -= sync_.waited_seconds() - waited;
  }
  if (last_of_shard && !last) tree_.merge(compute, replica_.parameters(), shard);
}

void TrainLoop::check_loss(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  const std::string found = find_first_nonfinite(replica_, setup_, communicator_.rank(), step);
  const auto findings =
      communicator_.gather_text(device_.communication(), found, "search for broken numbers");
  throw_nonfinite_loss(loss, setup_, step, findings);
}

void TrainLoop::report_step(const Pending& step, double seconds) {
  if (listeners_.empty()) return;
  StepReport report;
  report.step = step.step;
  report.epoch = setup_.partition.epoch_of(step.step - 1) + 1;
  report.step_in_epoch = (step.step - 1) % setup_.partition.steps_per_epoch() + 1;
  report.loss = step.loss_sum / static_cast<double>(step.samples);
  report.lr = step.lr;
  report.samples = step.samples;
  report.seconds = seconds;
  if (wants_grad_norm_) report.grad_norm = step.grad_norm;
  for (RunListener* listener : listeners_) listener->step_done(report);
}

void TrainLoop::after_step() {
  const Execution& execution = setup_.options.execution;
  const bool epoch_end = progress_.step % setup_.partition.steps_per_epoch() == 0;
  const bool check = execution.check_replicas > 0 && progress_.step % execution.check_replicas == 0;
  if (epoch_end || check || save_is_due() || stop_agreed_) {  // these want every number so far
    settle();
  }
  if (check) {
    device_.compute().synchronize();
    const std::string after = " after step " + std::to_string(progress_.step);
    Stream& stream = device_.communication();
    communicator_.require_identical(stream, replica_.parameters().values(), "parameters" + after);
    for (const StateArena& arena : optimizer_->state()) {
      communicator_.require_identical(stream, arena.numbers, arena.name + after);
    }
  }
  result_.interrupted = stop_agreed_ && progress_.step < setup_.last_step;
  if (epoch_end) end_epoch();
  save_if_due(result_.interrupted);
}

void TrainLoop::end_epoch() {
  EpochReport report;
  report.seconds = epoch_watch_.seconds();
  communicator_.set_activity("evaluation");
  result_.test = report.test = evaluator_.run();
  report.epoch = setup_.partition.epoch_of(progress_.step - 1) + 1;
  report.step = progress_.step;
  report.train_loss = progress_.epoch_loss / static_cast<double>(progress_.epoch_samples);
  report.samples_per_second = static_cast<double>(trained_samples_) / report.seconds;
  report.phases = phases_.since(phases_at_epoch_);
  report.sync_share = report.phases.sync / report.seconds;
  for (RunListener* listener : listeners_) listener->epoch_done(report);
  const bool whole = progress_.step % setup_.partition.steps_per_epoch() == 0;
  if (whole) progress_ = {.step = progress_.step};
  phases_at_epoch_ = phases_;
  trained_samples_ = 0;
}

bool TrainLoop::save_is_due() const {
  const Files& files = setup_.options.files;
  if (files.out.empty()) return false;
  if (progress_.step == setup_.last_step) return true;
  if (files.save_every > 0) return progress_.step % files.save_every == 0;
  return progress_.step % setup_.partition.steps_per_epoch() == 0;
}

void TrainLoop::save_if_due(bool at_end) {
  if (setup_.options.files.out.empty() || communicator_.rank() != 0) return;
  if (!save_is_due() && !at_end) return;
  if (saved_step_ == progress_.step) return;
  save(progress_.step == setup_.last_step);
}

void TrainLoop::save(bool finished) {
  const Files& files = setup_.options.files;
  const nn::Parameters& parameters = replica_.parameters();
  communicator_.set_activity("saving");
  const HostState state = download(device_, parameters, optimizer_->state());
  require_finite(state, parameters.registry(), progress_.step);
  train::save_state(files.out, parameters.registry(), state, setup_.model, setup_.options.recipe,
                    progress_, setup_.data.train->hash());
  saved_step_ = progress_.step;
  for (RunListener* listener : listeners_) listener->saved((files.out / "state").string());
  if (!finished) return;
  save_model(files.out / "model.safetensors", parameters.registry(), state, setup_.model);
  for (RunListener* listener : listeners_) {
    listener->saved((files.out / "model.safetensors").string());
  }
}

}  // namespace ringlet::train
