#include "train/learner.h"

#include <fmt/format.h>

#include <exception>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files/atomic_file.h"
#include "comm/core/rank_text.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "train/loop/diagnose.h"
#include "train/recipe/recipe_options.h"
#include "train/reports/failure.h"
#include "train/task/classification.h"

namespace ringlet::train {

namespace {

/// What a learner does not know is 0 or empty.
Recipe recipe_of(const LearnerOptions& options) {
  const LearnerRecipe& own = options.recipe;
  Recipe recipe{RateSpec{.lr = 0},
                static_cast<const OptimizerSpec&>(own),
                ScheduleSpec{},
                LossSpec{},
                static_cast<const ClassificationSpec&>(own),
                PictureSpec{},
                static_cast<const GradientSpec&>(own),
                static_cast<const PrecisionSpec&>(own)};
  recipe.model = recipe.data = "";
  recipe.batch_size = recipe.epochs = 0;
  recipe.shuffle = recipe.normalize = false;
  recipe.seed = options.seed;
  return recipe;
}

std::string name_of_member(const OptionRow& row) { return "Learner: LearnerRecipe::" + row.key; }

void check(const MakeModel& make_model, const LearnerOptions& options) {
  const nn::ModelInput& input = options.input;
  require(make_model != nullptr, "Learner",
          "make_model is empty; give a function that makes a model");
  require(options.max_batch >= 1, "Learner", "LearnerOptions::max_batch is at least 1");
  require(options.micro_batches >= 1, "Learner", "LearnerOptions::micro_batches is at least 1");
  require(!options.recompute || stages_in(options.stages) > 1, "Learner",
          "LearnerOptions::recompute is for a model in several stages");
  check_ranges(recipe_of(options), name_of_member, options.make_optimizer != nullptr);
  if (options.task) check_own_task(recipe_of(options), name_of_member);
  require(options.recipe.head_lr == 0 || stages_in(options.stages) == 1,
          "Learner: LearnerRecipe::head_lr", "is for a model in one stage so far");
  require(options.recipe.class_weights == kEqualWeights, "Learner: LearnerRecipe::class_weights",
          "is train()'s, which has the data; give a Classification with weights as the task, and "
          "step() the world's weight");
  const bool images = input.channels >= 1 && input.height >= 1 && input.width >= 1;
  require(options.task != nullptr || (images && input.outputs >= 1), "Learner",
          "LearnerOptions::input has channels, height, width and outputs of at least 1");
  require(images || input.channels == 0, "Learner",
          "LearnerOptions::input has height and width of at least 1, or no channels");
  require(images || !options.fields.empty(), "Learner",
          "batches have images or fields; say which in LearnerOptions");
  require(options.fields.size() <= data::kMostFields, "Learner",
          "LearnerOptions::fields are at most eight");
  for (const data::FieldSpec& field : options.fields) {
    const char* problem = field.problem();
    require(problem == nullptr, "Learner", problem);
    require(std::ranges::count(options.fields, field.name, &data::FieldSpec::name) == 1, "Learner",
            "LearnerOptions::fields have a name each");
  }
}

ReplicaSpec spec_of(DeviceKind device, const MakeModel& make_model, const LearnerOptions& options) {
  check(make_model, options);
  ReplicaSpec spec;
  spec.recipe = recipe_of(options);
  spec.make_model = make_model;
  spec.input = options.input;
  spec.fields = options.fields;
  spec.task = options.task;
  spec.max_train_batch = micro_batch_sizes(options.max_batch, options.micro_batches).front();
  spec.max_eval_batch = options.max_batch;
  require_precision(spec, device, options.emulate_precision);
  return spec;
}

/// Null: the model is in one stage.
std::shared_ptr<const StagesSetup> make_stages(const ReplicaSpec& spec, const Ranks& ranks,
                                               const LearnerOptions& options) {
  const int here = ranks.are_cut() ? ranks.stages->size() : 1;
  require(here == stages_in(options.stages), "Learner",
          "LearnerOptions::stages are not what the ranks are cut into; give it Execution::stages, "
          "and run_ranks() for several");
  TrainOptions run;
  run.make_optimizer = options.make_optimizer;
  run.execution.stages = options.stages;
  run.execution.pipeline = options.pipeline;
  run.execution.measures_stages = false;  // each rank would find another cut
  return stages_of(run, spec, micro_batch_sizes(options.max_batch, options.micro_batches),
                   ranks.replicas.size(), nullptr);
}

TrainStepOptions step_options(const LearnerOptions& options) {
  return {.sync = {options.buckets, static_cast<const GradientSpec&>(options.recipe),
                   stages_in(options.stages) > 1},
          .make_optimizer = options.make_optimizer};
}

/// All passes that a learner may make.
Rehearsal rehearsal_of(const LearnerOptions& options) {
  std::vector<std::int64_t> batches{options.max_batch};
  for (const std::int64_t samples : options.other_batches) {
    require(samples > 0 && samples <= options.max_batch, "Learner",
            "LearnerOptions::other_batches are of 1 to max_batch samples");
    batches.push_back(samples);
  }
  std::set<std::int64_t> passes;
  for (const std::int64_t samples : batches) {
    for (const std::int64_t size : micro_batch_sizes(samples, options.micro_batches)) {
      passes.insert(size);
    }
  }
  passes.erase(0);
  return {.training = {passes.begin(), passes.end()}, .evaluation = batches, .accumulates = true};
}

/// What all ranks of the world have alike.
comm::Plan plan_of_world(const LearnerOptions& options, const StagesSetup* stages) {
  comm::Plan entries;
  const Recipe recipe = recipe_of(options);
  for (const Option<Recipe>& row : recipe_options().rows()) {
    const char* owner = row.key == "seed" ? "LearnerOptions::" : "LearnerRecipe::";
    entries.emplace_back(owner + row.key, text_of(row.get(recipe)));
  }
  if (stages == nullptr) return entries;
  for (const nn::StageCut& cut : stages->cuts) {
    entries.emplace_back(fmt::format("LearnerOptions::stages, stage {}", cut.index), cut.layers);
  }
  return entries;
}

/// What all replicas have alike; each stage has another.
comm::Plan plan_of_replicas(TrainStep& step) {
  comm::Plan entries;
  for (const nn::PlannedParameter& parameter : step.replica().plan().parameters) {
    entries.emplace_back("parameter " + parameter.name, parameter.shape.to_string());
  }
  std::string arenas;
  for (const StateArena& arena : step.optimizer().state()) arenas += arena.name + ' ';
  entries.emplace_back("the optimiser's state", arenas);
  return entries;
}

void require_optimizer(const SavedState& saved, const std::string& wanted) {
  if (saved.recipe.optimizer == wanted) return;
  throw FileError(fmt::format("{} is a state of the optimiser '{}', not of '{}'",
                              saved.folder.string(), saved.recipe.optimizer, wanted));
}

/// Runs `body`; what leaves it ends this rank's part in the world, and is the learner's `failure`.
template <class Body>
void guarded(TrainStep& step, std::string& failure, Body body) {
  try {
    body();
  } catch (...) {
    failure = message_of_current_exception();
    step.abandon();
    throw;
  }
}

}  // namespace

Learner::Learner(Device& device, const Ranks& ranks, const MakeModel& make_model,
                 const LearnerOptions& options)
    : device_(device),
      ranks_(ranks),
      options_(options),
      whole_spec_(spec_of(device.id().kind, make_model, options)),
      stages_(make_stages(whole_spec_, ranks, options)),
      pipeline_(pipeline_for(ranks.stage(), options.pipeline, stages_in(options.stages),
                             options.micro_batches, options.recompute)),
      step_(device, ranks,
            stages_
                ? spec_of_stage(whole_spec_, *stages_, pipeline_, ranks.stage(), options.recompute)
                : whole_spec_,
            step_options(options)),
      link_(stages_ ? std::make_unique<StageLink>(device, *ranks.stages, step_.replica())
                    : nullptr),
      whole_(stages_ ? std::make_unique<StageState>(*stages_, whole_spec_, ranks) : nullptr),
      images_(device, {options.max_batch, options.input.channels, options.input.height,
                       options.input.width}),
      targets_(device, {options.max_batch}, DType::i32),
      loss_(device, {1}),
      numbers_(device, {step_.replica().task().metric().numbers},
               step_.replica().task().metric().dtype),
      exceptions_(std::uncaught_exceptions()) {
  for (const data::FieldSpec& field : options.fields) {
    fields_.emplace_back(device, Shape{options.max_batch, field.numbers()});
  }
  require(!step_.is_sharded(), "Learner",
          "the model has parameters whose rows are cut over ranks, and a learner does not know how "
          "many samples the other ranks' passes have; train it by train::train()");
  Stream& stream = device.communication();
  ranks_.world.require_equal(stream, plan_of_world(options, stages_.get()));
  ranks_.replicas.require_equal(stream, plan_of_replicas(step_));
  step_.rehearse_together(rehearsal_of(options));
  parameters().initialize(options.seed);
}

Learner::~Learner() {
  comm::Communicator& world = ranks_.world;
  if (world.size() == 1 || !failure_.empty() || std::uncaught_exceptions() > exceptions_) return;
  const double timeout = world.transport().timeout_seconds();
  try {
    end_with_the_others();
  } catch (...) {  // another rank's failure, which that rank tells
  }
  world.transport().set_timeout(timeout);
}

/// With numbers for its samples, if it has none: of a step, no two are alike in the world.
data::Batch Learner::numbered(data::Batch batch) const {
  if (batch.request.size() != 0) return batch;
  constexpr int kBitsOfOwn = 30;  // of 40 (sample_number()); the others are for ranks
  const std::int64_t first = (std::int64_t{ranks_.replicas.rank()} << kBitsOfOwn) + own_samples_;
  batch.request = {steps_, first, first + batch.n};
  return batch;
}

/// Throws ContractError for a batch that cannot be computed.
void Learner::check(const data::Batch& batch) const {
  require(batch.n >= 0, "Learner", "Batch::n is at least 0");
  require(batch.n <= options_.max_batch, "Learner",
          "the batch is larger than LearnerOptions::max_batch");
  if (batch.n == 0) return;
  const nn::ModelInput& input = options_.input;
  require((batch.images != nullptr || input.channels == 0) &&
              (batch.targets != nullptr || input.outputs == 0),
          "Learner",
          "Batch::images and Batch::targets of a batch with samples point to memory, not to null");
  if (input.outputs > 0) {
    require_classes({batch.targets, static_cast<std::size_t>(batch.n)}, input.outputs);
  }
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    require(batch.fields[i] != nullptr, "Learner",
            "Batch::fields of a batch with samples point to their memory, not to null");
  }
}

data::Batch Learner::to_device(const data::Batch& batch) {
  const nn::ModelInput& input = options_.input;
  data::Batch there = batch;
  there.images = images_.f32();
  there.targets = targets_.view().as<std::int32_t>();
  for (std::size_t i = 0; i < fields_.size(); ++i) there.fields[i] = fields_[i].f32();
  if (batch.n == 0) return there;
  Stream& compute = device_.compute();
  if (input.channels > 0 && step_.replica().reads_samples()) {
    copy_from_host(compute, batch.images,
                   View(there.images, {batch.n, input.channels, input.height, input.width},
                        DType::f32, Layout::nchw));
  }
  if (input.outputs > 0 && ranks_.is_last()) {
    copy_from_host(compute, batch.targets, View(there.targets, {batch.n}, DType::i32));
  }
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    copy_from_host(compute, batch.fields[i],
                   View(there.fields[i], {batch.n, fields_[i].shape()[1]}, DType::f32));
  }
  return there;
}

/// Of a batch on the device.
data::Batch Learner::micro_batch(const data::Batch& batch, int k) const {
  std::int64_t begin = 0;
  for (int i = 0; i < k; ++i) begin += samples_[static_cast<std::size_t>(i)];
  data::Batch part = batch;
  part.n = samples_[static_cast<std::size_t>(k)];
  part.request.begin = batch.request.begin + begin;
  part.request.end = part.request.begin + part.n;
  const nn::ModelInput& input = options_.input;
  part.images += begin * input.channels * input.height * input.width;
  part.targets += begin;
  for (std::size_t i = 0; i < fields_.size(); ++i) part.fields[i] += begin * fields_[i].shape()[1];
  return part;
}

/// Forwards and backwards of a batch on the device; its gradients stay on this rank.
void Learner::run_program(const data::Batch& batch, bool last) {
  const int count = options_.micro_batches, passes = step_.replica().passes();
  samples_ = micro_batch_sizes(batch.n, count);
  for (const Action& action : pipeline_.programs[static_cast<std::size_t>(ranks_.stage())]) {
    if (const auto* forward = std::get_if<Forward>(&action)) {
      const int k = forward->micro_batch;
      const bool ends = last && k + 1 == count;
      step_.forward(
          micro_batch(batch, k),
          {.first_of_shard = micro_batches_ == 0 && k == 0, .last_of_shard = ends, .last = ends},
          {}, k % passes);
    } else if (const auto* backward = std::get_if<Backward>(&action)) {
      step_.backward(backward->micro_batch % passes);
    } else if (const auto* move = std::get_if<Move>(&action)) {
      link_->run(*move, samples_);
    } else if (last) {
      step_.finish_gradients();
    }
  }
}

void Learner::require_no_failure() const {
  if (failure_.empty()) return;
  throw ContractError("Learner: it has failed before, and goes on no more: " + failure_);
}

/// Throws ContractError for a part of a step that cannot be, before anything is done for it.
void Learner::check(const data::Batch& batch, std::int64_t world_samples,
                    double world_weight) const {
  require_no_failure();
  require(micro_batches_ == 0 || (world_samples == world_samples_ && world_weight == world_weight_),
          "Learner",
          "world_samples and world_weight must be the same for all micro-batches of a step");
  require(world_samples >= 1, "Learner", "a step has at least one sample in the world");
  require(world_weight >= 0, "Learner", "world_weight is the sum of the samples' weights, or 0");
  check(batch);
}

void Learner::add(const data::Batch& batch, std::int64_t world_samples, double world_weight,
                  Rates rates, bool last) {
  world_samples_ = world_samples;
  world_weight_ = world_weight;
  const data::Batch own = numbered(batch);
  own_samples_ += batch.n;
  rates.step = steps_;
  step_.begin(rates, world_samples, ranks_.is_last() ? own_samples_ : 0, false, world_weight);
  run_program(to_device(own), last);
  ++micro_batches_;
}

void Learner::accumulate(const data::Batch& batch, std::int64_t world_samples,
                         double world_weight) {
  require(!stages_, "Learner::accumulate",
          "is for a model in one stage; LearnerOptions::micro_batches are those of a step");
  check(batch, world_samples, world_weight);
  guarded(step_, failure_, [&] { add(batch, world_samples, world_weight, {}, false); });
}

double Learner::step(const data::Batch& batch, std::int64_t world_samples, const Rates& rates,
                     double world_weight) {
  check(batch, world_samples, world_weight);
  StepSums sums;
  guarded(step_, failure_, [&] {
    add(batch, world_samples, world_weight, rates, true);
    step_.send_sums();
    sums = step_.take_sums();
    make_step(sums, world_samples);
  });
  return sums.loss / (world_weight > 0 ? world_weight : static_cast<double>(world_samples));
}

void Learner::make_step(const StepSums& sums, std::int64_t world_samples) {
  if (sums.stop_wishes > 0) throw_unequal_steps();
  require(sums.samples == world_samples, "Learner::step",
          "the ranks' samples do not add up to world_samples");
  skipped_ = sums.skipped();
  if (!skipped_) {
    require(!step_.sync().narrows() || std::isfinite(sums.grad_norm), "Learner::step",
            "the gradient is beyond the type as which it travels; leave grad_dtype at f32");
    require(!step_.clips() || std::isfinite(sums.grad_norm), "Learner::step",
            "the gradient to be clipped is not finite; try a smaller rate and check the data");
    ++steps_;
  }
  require(
      sums.skips_in_row < LossScale::kMostSkips, "Learner::step",
      "20 steps in a row had a gradient beyond f16 and were skipped; take Precision::bf16, which "
      "reaches as far as f32, or a smaller rate, and check the data");
  step_.update();
  micro_batches_ = 0;
  own_samples_ = 0;
}

void Learner::require_between_steps(const char* what) const {
  require(micro_batches_ == 0, what, "must not be called between accumulate() and step()");
}

// One more step, of no samples, with the wish to stop. Where all ranks make it, all is well.
void Learner::end_with_the_others() {
  drain(device_.compute());  // the time-out is not to change under a collective
  drain(device_.communication());
  // The others may still be at work that takes any time; should they fail, this rank hears of it.
  ranks_.world.transport().set_timeout(std::numeric_limits<double>::infinity());
  step_.begin({}, 1, 0, true);
  run_program(to_device({}), true);
  step_.send_sums();
  const int ended = step_.take_sums().stop_wishes;
  if (ended < ranks_.world.size()) {  // the others go on: each must know of all
    ranks_.world.gather_text(device_.communication(), std::to_string(steps_), "steps made");
  }
}

void Learner::throw_unequal_steps() {
  const auto steps = ranks_.world.gather_text(device_.communication(),
                                              fmt::format("{} or more", steps_ + 1), "steps made");
  throw ContractError(fmt::format(
      "Learner::step: the ranks make unequal numbers of steps: {}; give every rank the same number "
      "(a batch may be empty)",
      comm::text_of_values(steps)));
}

Evaluation Learner::evaluate(const data::Batch& batch) {
  require(batch.n != 0, "Learner::evaluate", "the batch has no samples");
  check(batch);
  const Task& task = step_.replica().task();
  fill(device_.compute(), 0, numbers_);
  const data::Batch there = to_device(batch);
  if (link_) link_->receive(batch.n);
  if (ranks_.is_last()) {
    step_.replica().evaluate(there, loss_, numbers_);
  } else {
    step_.replica().evaluate_and_hand_on(there);
  }
  if (link_) tell_all_stages();
  const auto count = static_cast<std::size_t>(numbers_.shape().count());
  std::vector<float> sums(count);
  std::vector<std::int32_t> counts(count);
  const bool whole = task.metric().dtype == DType::i32;
  copy_to_host(device_.compute(), numbers_,
               whole ? static_cast<void*>(counts.data()) : sums.data());
  std::vector<double> numbers(sums.begin(), sums.end());
  if (whole) numbers.assign(counts.begin(), counts.end());
  return task.evaluation(static_cast<double>(read_scalar(device_.compute(), loss_)), batch.n,
                         numbers);
}

std::int64_t Learner::count_right(const data::Batch& batch) {
  return batch.n == 0 ? 0 : evaluate(batch).right;
}

/// What the last stage has measured.
void Learner::tell_all_stages() {
  link_->send();
  device_.compute().synchronize();
  Stream& stream = device_.communication();
  const int last = ranks_.stages->size() - 1;
  ranks_.stages->broadcast(stream, last, loss_, "loss of a batch");
  const View numbers(numbers_.view().address(), numbers_.shape());  // of four bytes each
  ranks_.stages->broadcast(stream, last, numbers, "what is measured of a batch");
  stream.synchronize();
}

void Learner::save(const std::filesystem::path& out) {
  require_between_steps("Learner::save");
  const bool writes = ranks_.world.rank() == 0;
  if (!writes && !whole_) return;
  const nn::Registry& registry = whole_ ? whole_->registry() : parameters().registry();
  const HostState state = whole_ ? whole_->collect(step_) : step_.download_state();
  if (!writes) return;
  require_finite(state, registry, steps_);
  save_state(out, registry, state, ModelInfo{.task = step_.replica().task().name()},
             recipe_of(options_), {.step = steps_}, 0);
}

void Learner::resume(const std::filesystem::path& out) {
  require_no_failure();
  require_between_steps("Learner::resume");
  guarded(step_, failure_, [&] {
    std::string steps;
    std::optional<HostState> read;
    const std::vector<ArenaSpec> arenas =
        whole_ ? whole_->arenas(step_.optimizer()) : specs_of(step_.optimizer().state());
    if (ranks_.world.rank() == 0) {
      const SavedState saved = read_state(out);
      require_optimizer(saved, options_.recipe.optimizer);
      const nn::Registry& registry = whole_ ? whole_->registry() : parameters().registry();
      read = load_state(saved, registry, arenas);
      steps = std::to_string(saved.progress.step);
      if (!whole_) step_.upload_state(*read);
    }
    if (whole_) whole_->hand_out(step_, read ? &*read : nullptr);
    step_.broadcast_state();
    steps_ = std::stoll(
        ranks_.world.gather_text(device_.communication(), steps, "steps of the state").front());
  });
}

}  // namespace ringlet::train
