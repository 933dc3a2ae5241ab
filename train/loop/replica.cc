#include "train/loop/replica.h"

#include <algorithm>

#include "base/memory_limits.h"
#include "kernels/classify.h"
#include "kernels/elementwise.h"
#include "nn/ops/softmax_cross_entropy.h"

namespace ringlet::train {

namespace {

const std::string kLossLayer = "loss";

nn::Variable cross_entropy(const nn::Variable& logits, const nn::Variable& labels) {
  return nn::softmax_cross_entropy(logits, labels);
}

nn::InputSpec input_of(const ReplicaSpec& spec, std::int64_t samples) {
  return {{samples, spec.input.channels, spec.input.height, spec.input.width},
          spec.layout,
          activations_of(spec.recipe.precision)};
}

/// The same for a dry run, which tries no more than `device` may have memory for.
nn::InputSpec dry_input_of(const Device& device, const ReplicaSpec& spec, std::int64_t samples) {
  nn::InputSpec input = input_of(spec, samples);
  const std::int64_t memory = device.id().kind == DeviceKind::cpu
                                  ? static_cast<std::int64_t>(usable_memory())
                                  : device.free_bytes();
  input.memory = std::min(memory, Arena::kUnlimited);
  return input;
}

}  // namespace

struct Replica::BlankBatch {
  BlankBatch(Device& device, const nn::InputSpec& input, std::int64_t samples)
      : images(device, input.shape, DType::f32, input.layout),
        labels(device, {samples}, DType::i32) {
    fill(device.compute(), 0, images);
    fill(device.compute(), 0, labels);
    batch = {images.f32(), labels.view().as<std::int32_t>(), samples, {0, 0, samples}};
  }
  Tensor images, labels;
  data::Batch batch;
};

Replica::Replica(Device& device, const ReplicaSpec& spec, Allocator* gradients_from)
    : device_(device),
      spec_(spec),
      model_(make_model(spec)),
      registry_(nn::register_model(*model_)),
      plan_(nn::plan_training(*model_, registry_, dry_input_of(device, spec, spec.max_train_batch),
                              cross_entropy, spec.fuse)) {
  const auto evaluation =
      nn::plan_evaluation(*model_, registry_, dry_input_of(device, spec, spec.max_eval_batch),
                          cross_entropy, spec.fuse);
  parameters_ = std::make_unique<nn::Parameters>(device, registry_, plan_, spec.gradient_arenas,
                                                 gradients_from);
  activations_ = std::make_unique<Arena>(device, std::max(plan_.activation_bytes, evaluation));
  tape_ = std::make_unique<nn::Tape>(device, *activations_, registry_.parameters);
}

Replica::~Replica() = default;

void Replica::share_statistics(nn::CrossReplica* world) {
  world_ = world;
  if (world == nullptr || stand_in_ != nullptr) return;
  stand_in_ = std::make_unique<BlankBatch>(device_, input_of(spec_, 1), 1);
  no_seed_ = Tensor(device_, {1});
  fill(device_.compute(), 0, no_seed_);
}

/// Where nobody has samples, nobody runs the model.
bool Replica::stands_in() const { return world_ != nullptr && world_->samples() > 0; }

void Replica::run_forward(const data::Batch& batch, bool training, ConstView position,
                          const nn::BatchShare& share, const View& losses) {
  tape_->begin({.training = training,
                .seed = spec_.recipe.seed,
                .epoch = batch.request.epoch,
                .first_sample = batch.request.begin,
                .position = position,
                .fuse = spec_.fuse,
                .share = share,
                .world = world_});
  const nn::InputSpec input = input_of(spec_, batch.n);
  parameters_->narrow_values(device_.compute());
  const nn::Variable x = nn::model_input(
      *tape_, View(batch.images, input.shape, DType::f32, input.layout), input.activations);
  labels_ = tape_->constant(View(batch.labels, {batch.n}, DType::i32));
  logits_ = model_->forward(*tape_, x);
  const nn::Tape::Scope scope(*tape_, kLossLayer);
  const auto smoothing = static_cast<float>(training ? spec_.recipe.label_smoothing : 0);
  loss_ = nn::smoothed_cross_entropy(logits_, labels_, smoothing, losses);
}

void Replica::forward(const data::Batch& batch, ConstView position, const nn::BatchShare& share,
                      View losses) {
  samples_ = batch.n;
  if (batch.n > 0) {
    run_forward(batch, true, position, share, losses);
  } else if (stands_in()) {
    run_forward(stand_in_->batch, true, position, {});
  }
}

void Replica::backward(const View& seed, const nn::BackwardOptions& options,
                       nn::ReadyListener* listener) {
  if (samples_ == 0 && !stands_in()) {
    tape_->backward_of_nothing(options, listener);
    return;
  }
  tape_->backward(loss_, samples_ == 0 ? no_seed_.view() : seed, options, listener);
}

void Replica::rehearse_training(std::int64_t samples, ConstView position, bool accumulate) {
  const BlankBatch blank(device_, input_of(spec_, samples), samples);
  const Tensor numbers(device_, {2});  // the sum of losses, and the seed
  fill(device_.compute(), 0, numbers);
  forward(blank.batch, position, {}, numbers.view().slice(0, 1));
  backward(numbers.view().slice(1, 2), {.accumulate = accumulate}, nullptr);
  device_.compute().synchronize();  // then the batch may go
}

void Replica::rehearse_evaluation(std::int64_t samples) {
  const BlankBatch blank(device_, input_of(spec_, samples), samples);
  const Tensor loss(device_, {1}), counts(device_, {2 * spec_.input.classes}, DType::i32);
  fill(device_.compute(), 0, counts);
  evaluate(blank.batch, loss, counts);
  device_.compute().synchronize();
}

void Replica::evaluate(const data::Batch& batch, View loss, View counts) {
  run_forward(batch, false, {});
  copy(device_.compute(), loss_.value(), loss);
  argmax_count(device_.compute(), logits_.value(), labels_.value(), counts);
}

}  // namespace ringlet::train
