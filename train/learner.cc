#include "train/learner.h"

#include <fmt/format.h>

#include <exception>
#include <limits>
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
  check_ranges(recipe_of(options), name_of_member, options.make_optimizer != nullptr);
  if (options.task) check_own_task(recipe_of(options), name_of_member);
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
  spec.max_train_batch = spec.max_eval_batch = options.max_batch;
  require_precision(spec, device, options.emulate_precision);
  return spec;
}

TrainStepOptions step_options(const LearnerOptions& options) {
  return {.sync = {options.buckets, static_cast<const GradientSpec&>(options.recipe)},
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
  return {.training = batches, .evaluation = batches, .accumulates = true};
}

void require_optimizer(const SavedState& saved, const std::string& wanted) {
  if (saved.recipe.optimizer == wanted) return;
  throw FileError(fmt::format("{} is a state of the optimiser '{}', not of '{}'",
                              saved.folder.string(), saved.recipe.optimizer, wanted));
}

/// Runs `body`; what leaves it ends this rank's part in the world.
template <class Body>
void guarded(TrainStep& step, bool& failed, Body body) {
  try {
    body();
  } catch (...) {
    failed = true;
    step.abandon();
    throw;
  }
}

}  // namespace

Learner::Learner(Device& device, comm::Communicator& communicator, const MakeModel& make_model,
                 const LearnerOptions& options)
    : device_(device),
      communicator_(communicator),
      options_(options),
      step_(device, communicator, spec_of(device.id().kind, make_model, options),
            step_options(options)),
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
  step_.rehearse_together(rehearsal_of(options));
  parameters().initialize(options.seed);
}

Learner::~Learner() {
  if (communicator_.size() == 1 || failed_ || std::uncaught_exceptions() > exceptions_) return;
  const double timeout = communicator_.transport().timeout_seconds();
  try {
    end_with_the_others();
  } catch (...) {  // another rank's failure, which that rank tells
  }
  communicator_.transport().set_timeout(timeout);
}

data::Batch Learner::to_device(const data::Batch& batch) {
  require(batch.n >= 0 && batch.n <= options_.max_batch, "Learner",
          "the batch is larger than LearnerOptions::max_batch");
  const nn::ModelInput& input = options_.input;
  data::Batch there = batch;
  there.images = images_.f32();
  there.targets = targets_.view().as<std::int32_t>();
  for (std::size_t i = 0; i < fields_.size(); ++i) there.fields[i] = fields_[i].f32();
  if (batch.n == 0) return there;
  require((batch.images != nullptr || input.channels == 0) &&
              (batch.targets != nullptr || input.outputs == 0),
          "Learner",
          "Batch::images and Batch::targets of a batch with samples point to memory, not to null");
  Stream& compute = device_.compute();
  if (input.channels > 0) {
    copy_from_host(compute, batch.images,
                   View(there.images, {batch.n, input.channels, input.height, input.width},
                        DType::f32, Layout::nchw));
  }
  if (input.outputs > 0) {
    require_classes({batch.targets, static_cast<std::size_t>(batch.n)}, input.outputs);
    copy_from_host(compute, batch.targets, View(there.targets, {batch.n}, DType::i32));
  }
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    require(batch.fields[i] != nullptr, "Learner",
            "Batch::fields of a batch with samples point to their memory, not to null");
    copy_from_host(compute, batch.fields[i],
                   View(there.fields[i], {batch.n, fields_[i].shape()[1]}, DType::f32));
  }
  return there;
}

void Learner::add(const data::Batch& batch, std::int64_t world_samples, double world_weight,
                  Rates rates, bool last) {
  require(micro_batches_ == 0 || (world_samples == world_samples_ && world_weight == world_weight_),
          "Learner",
          "world_samples and world_weight must be the same for all micro-batches of a step");
  require(world_samples >= 1, "Learner", "a step has at least one sample in the world");
  require(world_weight >= 0, "Learner", "world_weight is the sum of the samples' weights, or 0");
  world_samples_ = world_samples;
  world_weight_ = world_weight;
  own_samples_ += batch.n;
  rates.step = steps_;
  step_.begin(rates, world_samples, own_samples_, false, world_weight);
  step_.add(to_device(batch),
            {.first_of_shard = micro_batches_ == 0, .last_of_shard = last, .last = last});
  ++micro_batches_;
}

void Learner::accumulate(const data::Batch& batch, std::int64_t world_samples,
                         double world_weight) {
  guarded(step_, failed_, [&] { add(batch, world_samples, world_weight, {}, false); });
}

double Learner::step(const data::Batch& batch, std::int64_t world_samples, const Rates& rates,
                     double world_weight) {
  StepSums sums;
  guarded(step_, failed_, [&] {
    add(batch, world_samples, world_weight, rates, true);
    step_.finish_gradients();
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
  communicator_.transport().set_timeout(std::numeric_limits<double>::infinity());
  step_.begin({}, 1, 0, true);
  step_.add(to_device({}), {});
  step_.finish_gradients();
  step_.send_sums();
  const int ended = step_.take_sums().stop_wishes;
  if (ended < communicator_.size()) {  // the others go on: each must know of all
    communicator_.gather_text(device_.communication(), std::to_string(steps_), "steps made");
  }
}

void Learner::throw_unequal_steps() {
  const auto steps = communicator_.gather_text(device_.communication(),
                                               fmt::format("{} or more", steps_ + 1), "steps made");
  throw ContractError(fmt::format(
      "Learner::step: the ranks make unequal numbers of steps: {}; give every rank the same number "
      "(a batch may be empty)",
      comm::text_of_values(steps)));
}

Evaluation Learner::evaluate(const data::Batch& batch) {
  require(batch.n > 0, "Learner::evaluate", "the batch has no samples");
  const Task& task = step_.replica().task();
  fill(device_.compute(), 0, numbers_);
  step_.replica().evaluate(to_device(batch), loss_, numbers_);
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

void Learner::save(const std::filesystem::path& out) {
  require_between_steps("Learner::save");
  if (communicator_.rank() != 0) return;
  const nn::Registry& registry = parameters().registry();
  const HostState state = step_.download_state();
  require_finite(state, registry, steps_);
  save_state(out, registry, state, ModelInfo{.task = step_.replica().task().name()},
             recipe_of(options_), {.step = steps_}, 0);
}

void Learner::resume(const std::filesystem::path& out) {
  require_between_steps("Learner::resume");
  guarded(step_, failed_, [&] {
    std::string steps;
    if (communicator_.rank() == 0) {
      const SavedState saved = read_state(out);
      require_optimizer(saved, options_.recipe.optimizer);
      step_.upload_state(
          load_state(saved, parameters().registry(), specs_of(step_.optimizer().state())));
      steps = std::to_string(saved.progress.step);
    }
    step_.broadcast_state();
    steps_ = std::stoll(
        communicator_.gather_text(device_.communication(), steps, "steps of the state").front());
  });
}

}  // namespace ringlet::train
