#include "nn/plan.h"

#include "kernels/running_statistics.h"
#include "nn/cast.h"
#include "nn/dry_run.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// Notes the order in which parameters become final.
class OrderRecorder : public ReadyListener {
 public:
  void gradient_ready(const Parameter& parameter) override { order.push_back(&parameter); }
  std::vector<const Parameter*> order;
};

/// The model's loss on its input, as the dry run has them.
Variable forward(DryRun& run, Layer& model, Tape& tape, const InputSpec& input,
                 const LossFunction& loss) {
  const Variable x =
      model_input(tape, run.external(input.shape, DType::f32, input.layout), input.activations);
  const Variable labels = tape.constant(run.external({input.shape[0]}, DType::i32, Layout::nchw));
  const Variable output = model.forward(tape, x);
  require(!output.absent(), "the model",
          "returns an empty variable; its forward() should return one");
  return loss(output, labels);
}

/// A parameter that a layer has taken, and that no operation knows, would not be learnt.
void require_uses(const Tape& tape, const std::vector<const Parameter*>& parameters) {
  for (const Parameter* parameter : parameters) {
    if (!tape.asked_for(*parameter) || tape.uses(*parameter) > 0) continue;
    throw ContractError(
        "the parameter " + parameter->name +
        " is taken by a layer and given to no recorded operation, so it would not be "
        "learnt; name it among the inputs of Tape::record()");
  }
}

/// Runs a pass of the whole batch, and says more where it does not fit.
template <class Pass>
void run_whole(const InputSpec& input, const Pass& pass) {
  try {
    pass();
  } catch (const OutOfMemoryError&) {
    throw OutOfMemoryError("the activations of a batch of " + std::to_string(input.shape[0]) +
                           " samples do not fit into the " + std::to_string(input.memory >> 20) +
                           " MiB of memory; use a smaller batch");
  }
}

std::int64_t aligned(std::int64_t element) {
  return (element + Plan::kArenaAlignment - 1) / Plan::kArenaAlignment * Plan::kArenaAlignment;
}

/// Calls pass(n) for every batch that is smaller than `input`'s. The arena's best fit may pack one
/// worse than a larger one where a model branches, and a short last batch must fit as well.
template <class Pass>
void for_smaller_batches(const InputSpec& input, const Pass& pass) {
  for (std::int64_t n = 1; input.shape.rank() > 0 && n < input.shape[0]; ++n) {
    try {
      pass(InputSpec{input.shape.with_batch(n), input.layout, input.activations});
    } catch (const ContractError&) {
      return;  // a model for batches of one size: it will not be given others
    }
  }
}

}  // namespace

Variable model_input(Tape& tape, const View& batch, DType activations) {
  return cast(tape.constant(batch), activations);
}

Plan plan_training(Layer& model, const Registry& registry, const InputSpec& input,
                   const LossFunction& loss, bool fuse) {
  require(loss != nullptr, "plan_training", "the loss is an empty function");
  DryRun run(registry, input.activations, input.layout);
  Arena activations(run.device, input.memory);
  Tape tape(run.device, activations, registry.parameters);
  OrderRecorder recorder;
  Plan plan;
  const View seed = run.external({1}, DType::f32, Layout::nchw);
  tape.check_layers();
  run.device.compute().set_totals(&plan.forward);
  tape.begin({.fuse = fuse});
  run_whole(input, [&] {
    const Variable result = forward(run, model, tape, input, loss);
    run.device.compute().set_totals(&plan.backward);
    tape.backward(result, seed, {}, &recorder);
  });
  run.device.compute().set_totals(nullptr);
  require_uses(tape, recorder.order);

  for (const Parameter* parameter : recorder.order) {
    const std::int64_t begin = aligned(plan.elements);
    const std::int64_t count = parameter->shape.count();
    plan.parameters.push_back({parameter->name, parameter->shape, parameter->id,
                               tape.uses(*parameter), begin, begin + count});
    plan.elements = begin + count;
    plan.parameter_count += count;
  }
  plan.elements = aligned(plan.elements);
  for (const RunningStatistics* running : registry.running) {
    plan.running_elements += running_update_size(running->mean.shape.count());
  }
  for_smaller_batches(input, [&](const InputSpec& smaller) {
    tape.begin({.fuse = fuse});
    tape.backward(forward(run, model, tape, smaller, loss), seed);
  });
  plan.activation_bytes = activations.high_water();
  plan.activations = input.activations;
  plan.images = input.layout;
  return plan;
}

std::int64_t plan_evaluation(Layer& model, const Registry& registry, const InputSpec& input,
                             const LossFunction& loss, bool fuse) {
  DryRun run(registry, input.activations, input.layout);
  Arena activations(run.device, input.memory);
  Tape tape(run.device, activations, registry.parameters);
  const auto pass = [&](const InputSpec& batch) {
    tape.begin({.training = false, .fuse = fuse});
    forward(run, model, tape, batch, loss);
  };
  run_whole(input, [&] { pass(input); });
  for_smaller_batches(input, pass);
  return activations.high_water();
}

}  // namespace ringlet::nn
