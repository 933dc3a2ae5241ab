#include "nn/plan.h"

#include "kernels/meta_device.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// Notes the order in which parameters become final.
class OrderRecorder : public ReadyListener {
 public:
  void gradient_ready(const Parameter& parameter) override { order.push_back(&parameter); }
  std::vector<const Parameter*> order;
};

/// A meta device on which every parameter of the model has a view that is never touched.
class DryRun {
 public:
  explicit DryRun(const Registry& registry) : registry_(registry) {
    for (Parameter* parameter : registry.parameters) {
      views_.push_back(parameter->value);
      views_.push_back(parameter->gradient);
      const auto bytes = parameter->shape.count() * size_of(DType::f32);
      parameter->value = View(device.allocate(bytes), parameter->shape);
      parameter->gradient = View(device.allocate(bytes), parameter->shape);
    }
    for (StateBuffer* buffer : registry.buffers) {
      views_.push_back(buffer->value);
      buffer->value = View(device.allocate(buffer->shape.count() * 4), buffer->shape);
    }
  }
  ~DryRun() {
    auto view = views_.begin();
    for (Parameter* parameter : registry_.parameters) {
      parameter->value = *view++;
      parameter->gradient = *view++;
    }
    for (StateBuffer* buffer : registry_.buffers) buffer->value = *view++;
  }
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  View external(const Shape& shape, DType dtype, Layout layout) {
    return {device.allocate(storage_count(shape, layout) * size_of(dtype)), shape, dtype, layout};
  }
  Variable forward(Layer& model, Tape& tape, const InputSpec& input, const LossFunction& loss) {
    const Variable x = tape.constant(external(input.shape, DType::f32, input.layout));
    const Variable labels = tape.constant(external({input.shape[0]}, DType::i32, Layout::nchw));
    return loss(model.forward(tape, x), labels);
  }

  MetaDevice device;

 private:
  const Registry& registry_;
  std::vector<View> views_;  // that parameters and buffers had before, and get back
};

std::int64_t aligned(std::int64_t element) {
  return (element + Plan::kArenaAlignment - 1) / Plan::kArenaAlignment * Plan::kArenaAlignment;
}

}  // namespace

Plan plan_training(Layer& model, const Registry& registry, const InputSpec& input,
                   const LossFunction& loss) {
  DryRun run(registry);
  Arena activations(run.device, Arena::kUnlimited);
  Tape tape(run.device, activations, registry.parameters);
  OrderRecorder recorder;
  Plan plan;

  run.device.compute().set_totals(&plan.forward);
  tape.begin({});
  const Variable result = run.forward(model, tape, input, loss);
  run.device.compute().set_totals(&plan.backward);
  tape.backward(result, run.external({1}, DType::f32, Layout::nchw), {}, &recorder);

  for (const Parameter* parameter : recorder.order) {
    const std::int64_t begin = aligned(plan.elements);
    const std::int64_t count = parameter->shape.count();
    plan.parameters.push_back({parameter->name, parameter->shape, parameter->id,
                               tape.uses(*parameter), begin, begin + count});
    plan.elements = begin + count;
    plan.parameter_count += count;
  }
  plan.elements = aligned(plan.elements);
  plan.activation_bytes = activations.high_water();
  return plan;
}

std::int64_t plan_evaluation(Layer& model, const Registry& registry, const InputSpec& input,
                             const LossFunction& loss) {
  DryRun run(registry);
  Arena activations(run.device, Arena::kUnlimited);
  Tape tape(run.device, activations, registry.parameters);
  tape.begin({.training = false});
  run.forward(model, tape, input, loss);
  return activations.high_water();
}

}  // namespace ringlet::nn
