// What a TrainLoop does before its first step: its parts, what the ranks agree on, and what the
// model begins with.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "train/batches/label_batches.h"
#include "train/files/centres.h"
#include "train/files/load_model.h"
#include "train/loop/best_test.h"
#include "train/loop/centres_in_words.h"
#include "train/loop/on_rank_0.h"
#include "train/loop/plan_entries.h"
#include "train/loop/read_ahead.h"
#include "train/loop/train_loop.h"
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

/// What this rank's replica is built of: its stage, if the model is cut.
ReplicaSpec spec_of(const RunSetup& setup, const Ranks& ranks, const Pipeline& pipeline) {
  if (!setup.stages) return setup.replica;
  require(ranks.are_cut() && ranks.stages->size() == setup.stages->count(), "TrainLoop",
          "a model in stages has a rank for each; run it by run_ranks()");
  return spec_of_stage(setup.replica, *setup.stages, pipeline, ranks.stage(),
                       setup.options.execution.recompute);
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
    saver_.begin();
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

}  // namespace ringlet::train
