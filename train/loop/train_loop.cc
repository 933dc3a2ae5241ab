#include "train/loop/train_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "train/batches/label_batches.h"
#include "train/files/centres.h"
#include "train/files/load_model.h"
#include "train/loop/best_test.h"
#include "train/loop/centres_in_words.h"
#include "train/loop/diagnose.h"
#include "train/loop/on_rank_0.h"
#include "train/loop/plan_entries.h"
#include "train/reports/failure.h"
#include "train/setup/run_length.h"

namespace ringlet::train {

namespace {

data::BatchSchedule schedule_of(const RunSetup& setup, int rank) {
  return [&setup, rank, units = setup.partition.units(rank)](
             std::int64_t k) -> std::optional<data::BatchRequest> {
    const std::int64_t step = setup.first_step + k / units;
    if (step >= setup.last_step) return {};
    return setup.partition.unit(step, rank, k % units);
  };
}

TrainStepOptions step_options(const RunSetup& setup, int rank, bool grad_norm) {
  return {.sync = {static_cast<const BucketSpec&>(setup.options.execution),
                   static_cast<const GradientSpec&>(setup.options.recipe), setup.stages != nullptr},
          .make_optimizer = setup.options.make_optimizer,
          .shards =
              setup.partition.exact ? static_cast<int>(setup.partition.shards_of(rank).size()) : 1,
          .in_flight = setup.steps_in_flight,
          .grad_norm = grad_norm,
          .world_statistics = setup.options.recipe.batch_norm == BatchStatistics::world};
}

/// Whether samples are read while the run goes on: one may fail then.
bool reads(const RunSetup& setup) { return setup.data.train->images().empty(); }

/// What this rank's replica is built of: its stage, if the model is cut.
ReplicaSpec spec_of(const RunSetup& setup, const Ranks& ranks, const Pipeline& pipeline) {
  if (!setup.stages) return setup.replica;
  require(ranks.are_cut() && ranks.stages->size() == setup.stages->count(), "TrainLoop",
          "a model in stages has a rank for each; run it by run_ranks()");
  return spec_of_stage(setup.replica, *setup.stages, pipeline, ranks.stage(),
                       setup.options.execution.recompute);
}

/// Batches of a rank from one step's beginning up to the end of the first that all ranks can leave
/// out when they hear of it now: those in flight are made.
std::int64_t batches_in_sight(const RunSetup& setup, int rank) {
  return setup.partition.units(rank) * (2 + setup.steps_in_flight);
}

data::LoaderOptions loader_of(const RunSetup& setup, comm::Communicator& communicator) {
  data::LoaderOptions loader = setup.loader;
  loader.on_read = communicator.note_of_work();
  if (reads(setup)) {  // those, the one in use, and one that is being read meanwhile
    const std::int64_t wanted = batches_in_sight(setup, communicator.rank()) + 2;
    loader.depth = std::max(loader.depth, static_cast<int>(wanted));
  }
  return loader;
}

Pipeline pipeline_of(const RunSetup& setup, const Ranks& ranks) {
  const Execution& execution = setup.options.execution;
  return pipeline_for(ranks.stage(), execution.pipeline, setup.stages ? setup.stages->count() : 1,
                      static_cast<int>(setup.partition.units(ranks.replica())),
                      execution.recompute);
}

/// Samples of a rank's passes in any step, each number once.
void add_unit_sizes(const Partition& partition, int rank, std::set<std::int64_t>& sizes) {
  for (const std::int64_t step : {std::int64_t{0}, partition.steps_per_epoch() - 1}) {
    for (std::int64_t unit = 0; unit < partition.units(rank); ++unit) {
      sizes.insert(partition.unit(step, rank, unit).size());
    }
  }
}

/// Those of `rank`; where rows are cut, of all ranks, which it multiplies by, and of a stand-in.
std::vector<std::int64_t> unit_sizes(const Partition& partition, int rank, bool is_sharded) {
  std::set<std::int64_t> sizes;
  add_unit_sizes(partition, rank, sizes);
  for (int other = 0; is_sharded && other < partition.ranks; ++other) {
    add_unit_sizes(partition, other, sizes);
  }
  if (is_sharded) sizes.insert(1);
  sizes.erase(0);  // runs nothing
  return {sizes.begin(), sizes.end()};
}

}  // namespace

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

TrainLoop::TrainLoop(const RunSetup& setup, Device& device, const Ranks& ranks,
                     std::span<RunListener* const> listeners)
    : setup_(setup),
      device_(device),
      ranks_(ranks),
      communicator_(ranks.replicas),
      pipeline_(pipeline_of(setup, ranks)),
      program_(pipeline_.programs[static_cast<std::size_t>(ranks.stage())]),
      reporter_(setup, listeners),
      step_(device, ranks, spec_of(setup, ranks, pipeline_),
            step_options(setup, communicator_.rank(), reporter_.wants_grad_norm())),
      link_(ranks.are_cut() ? std::make_unique<StageLink>(device, *ranks.stages, step_.replica())
                            : nullptr),
      whole_(ranks.are_cut() ? std::make_unique<StageState>(*setup.stages, setup.replica, ranks)
                             : nullptr),
      evaluator_(step_.replica(), ranks, setup.data.test, setup.loader, setup.evaluation_batch,
                 step_.axis(), link_.get()),
      verifier_(step_.replica(), communicator_, setup),
      saver_(setup, device, ranks.world, whole_.get()),
      batches_(make_stage_batches(device, step_.replica().reads_samples(), ranks.is_last(),
                                  setup.data.train, schedule_of(setup, communicator_.rank()),
                                  {.loader = loader_of(setup, communicator_),
                                   .seed = setup.options.recipe.seed,
                                   .shuffle = setup.options.recipe.shuffle,
                                   .per_step = setup.partition.units(communicator_.rank()),
                                   .held = step_.replica().passes()})),
      graphs_(device.compute(),
              setup.options.execution.graph && batches_->capturable() && !ranks.are_cut() &&
                  (communicator_.size() == 1 || communicator_.transport().captures() != nullptr),
              communicator_.transport().captures()),
      samples_(static_cast<std::size_t>(setup.partition.units(communicator_.rank()))),
      samples_by_rank_(step_.is_sharded()
                           ? static_cast<std::size_t>(communicator_.size() *
                                                      setup.partition.units(communicator_.rank()))
                           : 0) {
  rates_.reserve(static_cast<std::size_t>(setup.steps_in_flight) + 1);
  for (const Action& action : program_) {
    if (link_) activities_.push_back(comm::lasting(in_words(action)));
  }
  note("starting");
  check_plan();
  pick_strategies();
  agree_on_graphs();
  rehearse();
  load_start();
  const std::string centres = words_of_centres();
  on_rank_0(ranks_.world, device_, "start", [&] {
    reporter_.started(ranks_, step_.replica().parameters(), centres, step_.sync().buckets(),
                      strategies_);
  });
}

/// On rank 0, of the replica that has the most of them. Empty where the loss has none.
std::string TrainLoop::words_of_centres() {
  const Recipe& recipe = setup_.options.recipe;
  if (!recipe.has_margin()) return {};
  std::string words;
  if (ranks_.is_last() && ranks_.replica() == 0) {
    words = centres_in_words(step_.replica().parameters(), step_.optimizer().state(),
                             setup_.replicas * setup_.replica.max_train_batch);
  }
  if (!ranks_.are_cut()) return words;
  const auto all =
      ranks_.world.gather_text(device_.communication(), words, "what the centres take");
  return all[static_cast<std::size_t>(ranks_.world.size() - setup_.replicas)];
}

TrainLoop::~TrainLoop() {
  drain(device_.communication());
  drain(device_.compute());
}

void TrainLoop::check_plan() {
  const std::vector<Bucket>& buckets = step_.sync().buckets();
  auto entries = plan_entries(setup_, step_.replica().plan(), buckets,
                              strategies_in_words(communicator_, buckets));
  std::string arenas;
  for (const StateArena& arena : step_.optimizer().state()) arenas += arena.name + ' ';
  entries.emplace_back("the optimiser's state", arenas);
  communicator_.require_equal(device_.communication(), entries);
  if (ranks_.are_cut()) check_stages();
}

void TrainLoop::pick_strategies() {
  strategies_ = train::pick_strategies(communicator_, ranks_.world, device_,
                                       setup_.options.execution, probes_file());
  keep_strategies();
}

/// Two replicas' sums are the same by any strategy.
void TrainLoop::keep_strategies() {
  progress_.strategies = communicator_.size() > 2 ? strategies_.table : comm::StrategyTable();
}

/// What all stages have to agree on.
void TrainLoop::check_stages() {
  auto entries = plan_entries(setup_, {}, {}, communicator_.strategy());
  for (const nn::StageCut& cut : setup_.stages->cuts) {
    entries.emplace_back(fmt::format("--stages, stage {}", cut.index), cut.layers);
  }
  for (int stage = 0; stage < pipeline_.stages(); ++stage) {
    const std::string text = text_of(pipeline_.programs[static_cast<std::size_t>(stage)]);
    entries.emplace_back(
        fmt::format("--pipeline, stage {}", stage),
        fmt::format("{}, hash {:016x}", pipeline_.schedule, hash_bytes(text.data(), text.size())));
  }
  ranks_.world.require_equal(device_.communication(), entries);
}

/// Where data do not fit into a rank's GPU, its steps cannot be captured. Then no rank's are: all
/// must come to the same collectives.
void TrainLoop::agree_on_graphs() {
  if (communicator_.transport().captures() == nullptr) return;
  const auto objections = communicator_.gather_text(device_.communication(),
                                                    graphs_.enabled() ? "" : "no", "step graphs");
  for (const std::string& objection : objections) {
    if (!objection.empty()) graphs_.forbid();
  }
}

void TrainLoop::rehearse() {
  step_.rehearse_together(
      {.training = unit_sizes(setup_.partition, communicator_.rank(), step_.is_sharded()),
       .evaluation = evaluator_.pass_sizes(),
       .answers = verifier_.pass_sizes(),
       .accumulates = setup_.partition.units(communicator_.rank()) > 1,
       .position = batches_->position()});
}

void TrainLoop::load_start() {
  nn::Parameters& parameters = step_.replica().parameters();
  parameters.initialize(setup_.options.recipe.seed);
  std::optional<HostState> read;
  const bool is_sharded = whole_ ? whole_->is_sharded() : step_.is_sharded();
  const std::vector<ArenaSpec> arenas =
      whole_ ? whole_->arenas(step_.optimizer()) : specs_of(step_.optimizer().state());
  on_rank_0(ranks_.world, device_, "weights", [&] {
    const nn::Registry& registry = whole_ ? whole_->registry() : parameters.registry();
    const Files& files = setup_.options.files;
    if (setup_.resumed) {
      read = load_state(*setup_.resumed, registry, arenas,
                        is_sharded ? ApartRows::left_out : ApartRows::read);
    } else if (!files.init.empty()) {
      const std::filesystem::path file = model_file_of(files.init);
      if (!files.replace_head) require_task(file, replica().task().name());
      read = load_model(file, registry, files.replace_head ? Head::replaced : Head::as_in_file);
    }
    if (!setup_.resumed && !files.init_centres.empty()) {
      if (!read) read.emplace();
      take_centres(centres_file_of(files.init_centres), registry, setup_.data.train->target_names(),
                   *read);
    }
    if (read && !whole_) step_.upload_state(*read);
    saver_.bring_best();
  });
  if (whole_) read = whole_->hand_out(step_, read ? &*read : nullptr);
  step_.broadcast_state(read ? &*read : nullptr);
  if (!setup_.resumed) return step_.begin_average();
  if (step_.is_sharded() && step_.rows()->has_loss() && has_rows_apart(*setup_.resumed)) {
    step_.rows()->read(setup_.resumed->folder / kCentresFolder, step_.optimizer().state());
  }
  step_.swap_average();  // a state's model is the average
  progress_ = setup_.resumed->progress;
  outlast_patience(setup_.options.recipe, *setup_.resumed, progress_);
  note_length(setup_, progress_);
  progress_.unverified = progress_.unverified && !setup_.verification.empty();
  keep_strategies();
}

RunResult TrainLoop::run() {
  bool goes_on =
      !progress_.untested || test(*progress_.untested);  // the former run was ended there
  if (progress_.unverified) goes_on = goes_on && verify();
  while (goes_on && progress_.step < setup_.last_step && !progress_.stopped) goes_on = step();
  settle();
  const bool in_epoch = progress_.epoch_samples > 0;
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

/// What each rank's thread did in the epoch that has ended. A GPU's does not know.
void TrainLoop::tell_stages() {
  if (!ranks_.are_cut()) return;
  const PhaseSeconds phases = step_.phases().since(phases_told_);
  phases_told_ = step_.phases();
  StageSeconds mine = std::exchange(stage_seconds_, {});
  mine.busy = phases.forward + phases.backward;
  mine.data = phases.data;
  if (stage_watch_) mine.all = stage_watch_->seconds();
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
        find_first_nonfinite(step_.replica(), setup_, ranks_, index, step_.axis(), link_.get());
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
  if (failed) end_with_failure(failure_, "goes on");
}

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
    end_with_failure(tested.failure, "begins with this test");
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
    end_with_failure(outcome.failure, "begins with this verification");
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

/// A rank could not read its samples: that one has the `failure`, the others none. What was learnt
/// is saved. `resumed` is what a run does that is resumed.
void TrainLoop::end_with_failure(const std::exception_ptr& failure, std::string_view resumed) {
  if (!failure) ranks_.world.barrier(device_.communication(), "the end of the run");  // throws
  const std::filesystem::path& out = setup_.options.files.out;
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    const std::string message = message_of_current_exception();
    if (out.empty()) throw Error(message + "; nothing was saved (--no-out)");
    throw Error(fmt::format(
        "{}; what was learnt up to step {} is saved: once that is mended, --resume {} {}", message,
        progress_.step, out.string(), resumed));
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
