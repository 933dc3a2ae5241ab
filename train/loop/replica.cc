#include "train/loop/replica.h"

#include <algorithm>
#include <deque>

#include "base/memory_limits.h"
#include "base/trace.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "nn/cast.h"
#include "train/task/freezing.h"

namespace ringlet::train {

namespace {

View like(const Tensor& memory, std::int64_t samples) {
  const View& all = memory.view();
  return {all.address(), all.shape().with_batch(samples), all.dtype(), all.layout()};
}

/// All that it stores.
ConstView stored(const ConstView& view) { return {view.address(), {view.storage()}, view.dtype()}; }
View stored(const View& view) { return {view.address(), {view.storage()}, view.dtype()}; }

/// Zeros of any type: all of its bits are.
void clear(Device& device, const View& view) {
  if (is_narrow(view.dtype())) {
    const Tensor zeros(device, {view.storage()});
    fill(device.compute(), 0, zeros);
    cast(device.compute(), zeros, stored(view));
    device.compute().synchronize();
  } else {
    fill(device.compute(), 0, stored(view));
  }
}

/// The parameters, marked as the recipe says, and cut as a rank that stands there has them.
nn::Registry placed(nn::Registry registry, const Recipe& recipe, const nn::AxisPosition& position) {
  mark_parameters(registry, recipe);
  registry.place(registry.is_sharded() ? position : nn::AxisPosition{});
  return registry;
}

}  // namespace

struct Replica::BlankBatch {
  BlankBatch(Device& device, const nn::BatchSpec& spec, std::int64_t samples) {
    batch = {.n = samples, .request = {0, 0, samples}};
    std::size_t fields = 0;
    for (const nn::TensorSpec& tensor : spec.tensors) {
      if (tensor.constant || tensor.wants_gradient) continue;
      const View zeros =
          tensors.emplace_back(device, tensor.shape_of(samples), tensor.dtype, tensor.layout);
      fill(device.compute(), 0, zeros);
      if (tensor.dtype == DType::i32) {
        batch.targets = zeros.as<std::int32_t>();
      } else if (tensor.name == nn::kImages) {
        batch.images = zeros.f32();
      } else {
        batch.fields[fields++] = zeros.f32();
      }
    }
  }
  std::deque<Tensor> tensors;
  data::Batch batch;
};

nn::BatchSpec dry_batch_of(const Device& device, const ReplicaSpec& spec, std::int64_t samples,
                           int passes) {
  nn::BatchSpec batch = batch_of(spec, samples);
  const std::int64_t memory = device.id().kind == DeviceKind::cpu
                                  ? static_cast<std::int64_t>(usable_memory())
                                  : device.free_bytes() - 2 * device.scratch_limit();
  batch.memory = std::min(memory / std::max(1, passes), Arena::kUnlimited);
  return batch;
}

Replica::Replica(Device& device, const ReplicaSpec& spec, Allocator* gradients_from,
                 const nn::AxisPosition& position)
    : device_(device),
      spec_(spec),
      task_(task_of(spec)),
      batch_spec_(batch_of(spec, 1)),
      model_(make_model(spec)),
      registry_(placed(nn::register_model(*model_), spec.recipe, position)),
      plan_(nn::plan_training(
          registry_,
          dry_batch_of(device, spec, spec.max_train_batch, spec.recompute ? 1 : spec.passes),
          pass_of(spec_, *task_, *model_, true), spec.fuse)) {
  const auto evaluation =
      nn::plan_evaluation(registry_, dry_batch_of(device, spec, spec.max_eval_batch),
                          pass_of(spec_, *task_, *model_, false), spec.fuse);
  const std::int64_t answer = spec.max_answer_batch > 0 ? plan_answer() : 0;
  parameters_ = std::make_unique<nn::Parameters>(device, registry_, plan_, spec.gradient_arenas,
                                                 gradients_from);
  require(spec.passes > 0, "ReplicaSpec::passes", "a replica has at least one pass");
  passes_.resize(static_cast<std::size_t>(spec.passes));
  for (Pass& pass : passes_) {
    const bool first = &pass == &passes_.front();
    const std::int64_t others = first ? std::max(evaluation, answer) : 0;
    if (first || !spec.recompute) {
      pass.activations = std::make_shared<Arena>(device, std::max(plan_.activation_bytes, others));
      pass.tape = std::make_shared<nn::Tape>(device, *pass.activations, registry_.parameters);
    } else {
      pass.activations = passes_.front().activations;
      pass.tape = passes_.front().tape;
    }
    make_crossings(pass, std::max(spec.max_train_batch, first ? spec.max_eval_batch : 0));
  }
  if (plan_.step_bytes > 0) make_step_memory();
  const std::vector<float> constants = task_->constants();
  if (constants.empty()) return;
  constants_ = Tensor(device, {std::ssize(constants)});
  copy_from_host(device.compute(), constants.data(), constants_);
}

Replica::~Replica() = default;

void Replica::make_crossings(Pass& pass, std::int64_t samples) {
  const auto room_for = [&](const nn::Crossing& value) {
    Tensor room(device_, value.shape.with_batch(samples), value.dtype, value.layout);
    clear(device_, room);
    return room;
  };
  if (spec_.stage == nullptr) return;
  if (!spec_.stage->is_first()) pass.taken = room_for(spec_.stage->input());
  if (hands_on()) pass.gradient_of_handed_on = room_for(spec_.stage->output());
}

ConstView Replica::handed_on(int pass) const { return stored(at(pass).loss.value()); }

View Replica::taken(std::int64_t samples, int pass) const {
  return stored(like(at(pass).taken, samples));
}

View Replica::gradient_of_handed_on(std::int64_t samples, int pass) const {
  return stored(like(at(pass).gradient_of_handed_on, samples));
}

ConstView Replica::gradient_of_taken(int pass) const {
  const Pass& own = at(pass);
  return stored(own.tape->gradient(own.input));
}

/// Zeros: a rehearsal reads what other passes would have left there.
void Replica::make_step_memory() {
  step_memory_ = std::make_unique<Arena>(device_, plan_.step_bytes);
  fill(device_.compute(), 0, step_memory_->allocate({plan_.step_bytes / size_of(DType::f32)}));
  for (const Pass& pass : passes_) pass.tape->keep_steps_in(*step_memory_);
}

void Replica::share_statistics(nn::CrossReplica* world) {
  world_ = world;
  if (world != nullptr) make_stand_in();
}

void Replica::share_rows(nn::Axis* axis) {
  axis_ = axis;
  if (axis != nullptr) make_stand_in();
}

void Replica::make_stand_in() {
  if (stand_in_ != nullptr) return;
  stand_in_ = std::make_unique<BlankBatch>(device_, batch_spec_, 1);
  no_seed_ = Tensor(device_, {1});
  if (hands_on()) {
    const nn::Crossing& value = spec_.stage->output();
    no_seed_ = Tensor(device_, value.shape.with_batch(1), value.dtype, value.layout);
  }
  clear(device_, no_seed_);
}

/// Where nobody has samples, nobody runs the model.
bool Replica::stands_in() const {
  if (world_ != nullptr && world_->samples() > 0) return true;
  for (int rank = 0; axis_ != nullptr && rank < axis_->position().ranks; ++rank) {
    if (axis_->samples(rank) > 0) return true;
  }
  return false;
}

void Replica::begin_pass(Pass& pass, const data::Batch& batch, bool training, ConstView position,
                         const nn::BatchShare& share) {
  pass.tape->begin({.training = training,
                    .seed = spec_.recipe.seed,
                    .epoch = batch.request.epoch,
                    .first_sample = batch.request.begin,
                    .position = position,
                    .fuse = spec_.fuse,
                    .share = share,
                    .world = world_,
                    .axis = axis_,
                    .epochs = epochs_});
  parameters_->narrow_values(device_.compute());
  pass.batch = on_tape(pass, batch);
}

void Replica::run_forward(Pass& pass, const data::Batch& batch, bool training, ConstView position,
                          const nn::BatchShare& share, const View& losses, const View& numbers,
                          const View& told) {
  begin_pass(pass, batch, training, position, share);
  latest_ = &pass;
  pass.loss = train::run_forward(
      spec_, *task_, {*pass.tape, *model_, pass.batch, training, losses, numbers, told});
}

ConstView Replica::answer(const data::Batch& batch) {
  Pass& pass = passes_.front();
  begin_pass(pass, batch, false, {}, {});
  return nn::cast(task_->output(*pass.tape, *model_, pass.batch), DType::f32).value();
}

/// Bytes of activations.
std::int64_t Replica::plan_answer() {
  return nn::plan_evaluation(
      registry_, dry_batch_of(device_, spec_, spec_.max_answer_batch),
      [this](nn::Tape& tape, const nn::Batch& batch) {
        return nn::cast(task_->output(tape, *model_, batch), DType::f32);
      },
      spec_.fuse);
}

nn::Batch Replica::on_tape(Pass& pass, const data::Batch& batch) {
  nn::Tape& tape = *pass.tape;
  nn::Batch named(batch_spec_.activations);
  std::size_t fields = 0;
  for (const nn::TensorSpec& tensor : batch_spec_.tensors) {
    if (tensor.wants_gradient) {  // of a stand-in, what came last
      pass.input = tape.input(like(pass.taken, batch.n));
      named.add(tensor.name, pass.input);
      continue;
    }
    void* data = batch.images;
    if (tensor.constant) {
      data = constants_.f32();
    } else if (tensor.dtype == DType::i32) {
      data = batch.targets;
    } else if (tensor.name != nn::kImages) {
      data = batch.fields[fields++];
    }
    named.add(tensor.name,
              tape.constant(View(data, tensor.shape_of(batch.n), tensor.dtype, tensor.layout)));
  }
  return named;
}

void Replica::forward(const data::Batch& batch, ConstView position, const nn::BatchShare& share,
                      View losses, View told, int pass) {
  Pass& own = passes_.at(static_cast<std::size_t>(pass));
  own.samples = batch.n;
  own.given = batch;
  own.position = position;
  if (batch.n > 0) {
    run_forward(own, batch, true, position, share, losses, {}, told);
  } else if (stands_in()) {
    const View of_others = axis_ != nullptr ? told : View();  // it may have their classes
    run_forward(own, stand_in_->batch, true, position, {0, 0, 0}, {}, {}, of_others);
  }
}

/// The forward of a pass whose activations another one has overwritten, to the same bits. Losses
/// and running statistics have it already: its share of them is nothing.
void Replica::run_again(Pass& pass) {
  const ScopedSpan span(device_.compute().tracer(), "forward again", "phase");
  const data::Batch& batch = pass.samples > 0 ? pass.given : stand_in_->batch;
  run_forward(pass, batch, true, pass.position, {0, 0, 0});
}

void Replica::backward(const View& seed, const nn::BackwardOptions& options,
                       nn::ReadyListener* listener, int pass) {
  Pass& own = passes_.at(static_cast<std::size_t>(pass));
  if (own.samples == 0 && !stands_in()) {
    own.tape->backward_of_nothing(options, listener);
    return;
  }
  if (spec_.recompute && latest_ != &own) run_again(own);
  const View begin = hands_on() ? like(own.gradient_of_handed_on, own.samples) : seed;
  own.tape->backward(own.loss, own.samples == 0 ? no_seed_.view() : begin, options, listener);
}

void Replica::rehearse_training(std::int64_t samples, ConstView position, bool accumulate) {
  const BlankBatch blank(device_, batch_spec_, samples);
  const Tensor numbers(device_, {2 + kTold});  // the sum of losses, the seed, and what is told
  fill(device_.compute(), 0, numbers);
  forward(blank.batch, position, {}, numbers.view().slice(0, 1),
          numbers.view().slice(2, 2 + kTold));
  backward(numbers.view().slice(1, 2), {.accumulate = accumulate}, nullptr);
  device_.compute().synchronize();  // then the batch may go
}

void Replica::rehearse_evaluation(std::int64_t samples) {
  const BlankBatch blank(device_, batch_spec_, samples);
  const MetricSpec metric = task_->metric();
  const Tensor loss(device_, {1}), numbers(device_, {metric.numbers}, metric.dtype);
  fill(device_.compute(), 0, numbers);
  if (hands_on()) {
    evaluate_and_hand_on(blank.batch);
  } else {
    evaluate(blank.batch, loss, numbers);
  }
  device_.compute().synchronize();
}

void Replica::rehearse_answer(std::int64_t samples) {
  const BlankBatch blank(device_, batch_spec_, samples);
  (void)answer(blank.batch);
  device_.compute().synchronize();
}

void Replica::evaluate_nothing() {
  if (stands_in()) run_forward(passes_.front(), stand_in_->batch, false, {});
}

void Replica::evaluate_and_hand_on(const data::Batch& batch) {
  run_forward(passes_.front(), batch, false, {});
}

void Replica::evaluate(const data::Batch& batch, View loss, View numbers) {
  Pass& pass = passes_.front();
  run_forward(pass, batch, false, {}, {}, {}, numbers.count() > 0 ? numbers : View());
  copy(device_.compute(), pass.loss.value(), loss);
}

}  // namespace ringlet::train
