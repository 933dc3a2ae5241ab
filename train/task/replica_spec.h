// ReplicaSpec: the model, the tensors of a batch and the task of a replica.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/field.h"
#include "kernels/device.h"
#include "kernels/tensor.h"
#include "nn/batch.h"
#include "nn/layer.h"
#include "nn/models/model.h"
#include "nn/stages/stages.h"
#include "train/recipe/options.h"
#include "train/task/task.h"

namespace ringlet::train {

/// The part of a model that a rank runs (nn/stages/stages.h).
struct StageSpec {
  nn::Units units;
  nn::StageCut cut;
  bool is_first() const { return cut.begin == 0; }
  bool is_last() const { return cut.end == units.count(); }
  /// What it takes from the stage before it, and gives to the next one.
  const nn::Crossing& input() const { return units[cut.begin].input; }
  const nn::Crossing& output() const { return units[cut.end].input; }
};

/// What a replica must be told to be built; equal on all ranks of a stage.
struct ReplicaSpec {
  Recipe recipe;
  MakeModel make_model = {};                 ///< see TrainOptions
  nn::ModelInput input;                      ///< no channels: no images; no outputs: no targets
  std::vector<data::FieldSpec> fields{};     ///< of the data set
  std::shared_ptr<const Task> task{};        ///< null: classification, all classes alike
  std::shared_ptr<const StageSpec> stage{};  ///< null: the whole model
  Layout layout = Layout::nchw;
  std::int64_t max_train_batch = 1;  ///< samples of the largest forward and backward pass
  std::int64_t max_eval_batch = 1;
  std::int64_t max_answer_batch = 0;  ///< of a pass up to the model's answer; 0: there are none
  int gradient_arenas = 1;
  int passes = 1;  ///< of a step that may be between forward and backward at once
  /// Passes share their activations: a backward whose forward was not the last one to run runs it
  /// again, from what the pass took.
  bool recompute = false;
  bool fuse = true;
};

/// The model of `spec`, or its stage, the parameters without memory: where the loss has parameters
/// of its own, with these behind the model's last layer.
std::unique_ptr<nn::Layer> make_model(const ReplicaSpec& spec);
/// The whole model without the loss's parameters: what stages are cut from.
std::unique_ptr<nn::Layer> make_body(const ReplicaSpec& spec);
/// `answers`, which ends in the model's last layer, with the loss's parameters, if there are any.
std::unique_ptr<nn::Layer> with_loss(const ReplicaSpec& spec, std::unique_ptr<nn::Layer> answers);

/// What is trained for: spec.task, or classification.
std::shared_ptr<const Task> task_of(const ReplicaSpec& spec);

/// A field of a batch of `samples`: [samples, extents...].
Shape batch_shape(const data::FieldSpec& field, std::int64_t samples);

/// Whether it has images and fields: the whole model, a first stage, and a last one whose loss
/// looks at them.
bool reads_samples(const ReplicaSpec& spec);

/// The tensors of a batch of `samples`; of a stage, what it takes.
nn::BatchSpec batch_of(const ReplicaSpec& spec, std::int64_t samples);

/// Forward of `model` in training or evaluation, up to the loss; of a stage before the last one, up
/// to what it hands on.
nn::Variable run_forward(const ReplicaSpec& spec, const Task& task, const TaskPass& pass);
/// The same for a dry run. All must outlive it; without `spec`, of the whole model.
nn::Pass pass_of(const ReplicaSpec& spec, const Task& task, nn::Layer& model, bool training);
nn::Pass pass_of(const Task& task, nn::Layer& model, bool training);

/// Why a processor would compute the model's precision through f32 (precision_support.h).
std::string why_through_f32(const ReplicaSpec& spec, DeviceKind device, bool emulate);

/// Throws ContractError where such a device computes the model's precision not at all, or slowly
/// (precision.h).
void require_precision(const ReplicaSpec& spec, DeviceKind device, bool emulate);

/// The layout that `choice` means for this model and device: batch-in-lanes on the CPU when a pass
/// has at least sixteen samples, NHWC on a GPU whose tensor cores are used (uses_tensor_cores()),
/// else NCHW; that as well where the model has a layer that takes nothing else (Layer::takes()).
/// Throws ContractError where another is asked for by name then.
Layout choose_layout(LayoutChoice choice, DeviceKind device, std::int64_t samples_per_pass,
                     const ReplicaSpec& spec);

}  // namespace ringlet::train
