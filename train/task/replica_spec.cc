#include "train/task/replica_spec.h"

#include <utility>

#include "nn/layers/class_centres.h"
#include "nn/plan.h"
#include "train/recipe/models.h"
#include "train/recipe/precision_support.h"
#include "train/task/classification.h"
#include "train/task/margin_classification.h"

namespace ringlet::train {

namespace {

/// A stage, and the model that it is a part of.
class StageOfModel : public nn::Layer {
 public:
  StageOfModel(std::unique_ptr<nn::Layer> model, const StageSpec& spec)
      : model_(std::move(model)),
        stage_(nn::stage_of(*model_, spec.units, spec.cut.begin, spec.cut.end)) {}
  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    return stage_->forward(tape, x);
  }
  void register_in(nn::Registry& registry, const std::string& prefix) override {
    stage_->register_in(registry, prefix);
  }

 private:
  std::unique_ptr<nn::Layer> model_;
  std::unique_ptr<nn::Layer> stage_;
};

}  // namespace

std::unique_ptr<nn::Layer> make_body(const ReplicaSpec& spec) {
  nn::ModelInput input = spec.input;
  if (spec.recipe.has_margin()) input.outputs = spec.recipe.embedding_size;
  if (spec.make_model) return nn::require_model(spec.make_model(input), "make_model");
  return make_model(spec.recipe.model, input);
}

std::unique_ptr<nn::Layer> with_loss(const ReplicaSpec& spec, std::unique_ptr<nn::Layer> answers) {
  const Recipe& recipe = spec.recipe;
  if (!recipe.has_margin()) return answers;
  auto centres = std::make_unique<nn::ClassCentres>(std::move(answers), spec.input.outputs,
                                                    recipe.embedding_size);
  if (recipe.sample_rate < 1) {
    centres->centres().sampling =
        nn::RowSampling{.rate = recipe.sample_rate,
                        .shards = class_shards_of(recipe, spec.input.outputs),
                        .most_named = recipe.batch_size,
                        .seed = recipe.seed};
  }
  return centres;
}

std::unique_ptr<nn::Layer> make_model(const ReplicaSpec& spec) {
  std::unique_ptr<nn::Layer> model = make_body(spec);
  if (!spec.stage) return with_loss(spec, std::move(model));
  auto stage = std::make_unique<StageOfModel>(std::move(model), *spec.stage);
  return spec.stage->is_last() ? with_loss(spec, std::move(stage)) : std::move(stage);
}

std::shared_ptr<const Task> task_of(const ReplicaSpec& spec) {
  if (spec.task) return spec.task;
  if (spec.recipe.has_margin()) return std::make_shared<const MarginClassification>(spec.recipe);
  return std::make_shared<const Classification>(spec.input.outputs, spec.recipe);
}

Shape batch_shape(const data::FieldSpec& field, std::int64_t samples) {
  const std::vector<std::int64_t>& e = field.extents;
  if (e.size() == 2) return {samples, e[0], e[1]};
  if (e.size() == 3) return {samples, e[0], e[1], e[2]};
  return {samples, e.at(0)};
}

bool reads_samples(const ReplicaSpec& spec) {
  if (!spec.stage || spec.stage->is_first()) return true;
  return spec.stage->is_last() && task_of(spec)->loss_reads_samples();
}

nn::BatchSpec batch_of(const ReplicaSpec& spec, std::int64_t samples) {
  nn::BatchSpec batch{.activations = activations_of(spec.recipe.precision), .images = spec.layout};
  const nn::ModelInput& input = spec.input;
  const StageSpec* const stage = spec.stage.get();
  const bool takes = stage != nullptr && !stage->is_first();  // of the stage before
  if (takes) {
    const nn::Crossing& taken = stage->input();
    batch.tensors.push_back({.name = nn::kHandedOn,
                             .shape = taken.shape.with_batch(samples),
                             .layout = taken.layout,
                             .dtype = taken.dtype,
                             .wants_gradient = taken.wants_gradient});
  }
  if (input.channels > 0 && reads_samples(spec)) {
    batch.tensors.push_back(
        {nn::kImages, {samples, input.channels, input.height, input.width}, spec.layout});
  }
  if (stage != nullptr && !stage->is_last()) {
    batch.hands_on = true;
    return batch;
  }
  if (input.outputs > 0) {
    batch.tensors.push_back({nn::kTargets, {samples}, Layout::nchw, DType::i32});
  }
  for (const data::FieldSpec& field : spec.fields) {
    if (!reads_samples(spec)) break;
    batch.tensors.push_back({field.name, batch_shape(field, samples)});
  }
  const std::int64_t constants = std::ssize(task_of(spec)->constants());
  if (constants > 0) {
    batch.tensors.push_back({nn::kConstants, {constants}, Layout::nchw, DType::f32, true});
  }
  return batch;
}

nn::Variable run_forward(const ReplicaSpec& spec, const Task& task, const TaskPass& pass) {
  const StageSpec* const stage = spec.stage.get();
  if (stage == nullptr) return task.run(pass);
  const nn::Variable y = stage->is_first()
                             ? task.output(pass.tape, pass.model, pass.batch)
                             : pass.model.forward(pass.tape, pass.batch[nn::kHandedOn]);
  require(!y.absent(), "the model", "returns an empty variable; its forward() should return one");
  return stage->is_last() ? task.run_from(y, pass) : y;
}

nn::Pass pass_of(const ReplicaSpec& spec, const Task& task, nn::Layer& model, bool training) {
  return [&spec, &task, &model, training](nn::Tape& tape, const nn::Batch& batch) {
    return run_forward(spec, task, {tape, model, batch, training});
  };
}

nn::Pass pass_of(const Task& task, nn::Layer& model, bool training) {
  return [&task, &model, training](nn::Tape& tape, const nn::Batch& batch) {
    return task.run({tape, model, batch, training});
  };
}

std::string why_through_f32(const ReplicaSpec& spec, DeviceKind device, bool emulate) {
  const auto model = make_model(spec);
  return why_through_f32(spec.recipe.precision, device, spec.layout,
                         nn::register_model(*model).parameters, emulate);
}

void require_precision(const ReplicaSpec& spec, DeviceKind device, bool emulate) {
  const Precision precision = spec.recipe.precision;
  if (!is_narrow(precision)) return;
  const auto model = make_model(spec);
  require_precision(precision, device, spec.layout, nn::register_model(*model).parameters, emulate);
}

namespace {

/// What `choice` means for a model whose layers take any layout.
Layout fastest_layout(LayoutChoice choice, DeviceKind device, std::int64_t samples_per_pass,
                      Precision precision) {
  if (choice == LayoutChoice::nchw) return Layout::nchw;
  if (choice == LayoutChoice::lanes) return Layout::lanes;
  if (choice == LayoutChoice::nhwc) return Layout::nhwc;
  if (device == DeviceKind::cuda) {
    return uses_tensor_cores(precision) ? Layout::nhwc : Layout::nchw;
  }
  const bool fills_lanes = samples_per_pass >= kLanes;
  return device == DeviceKind::cpu && fills_lanes ? Layout::lanes : Layout::nchw;
}

}  // namespace

Layout choose_layout(LayoutChoice choice, DeviceKind device, std::int64_t samples_per_pass,
                     const ReplicaSpec& spec) {
  const Layout fastest = fastest_layout(choice, device, samples_per_pass, spec.recipe.precision);
  // Those of Ringlet's own models take any.
  if (fastest == Layout::nchw || !spec.make_model || make_body(spec)->takes(fastest)) {
    return fastest;
  }
  require(choice == LayoutChoice::automatic, "Execution::layout",
          "the model has a layer that does not say that it takes this layout; leave it out, or "
          "override Layer::takes()");
  return Layout::nchw;
}

}  // namespace ringlet::train
