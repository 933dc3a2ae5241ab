#include "nn/plan.h"

#include <algorithm>
#include <map>

#include "kernels/running_statistics.h"
#include "nn/cast.h"
#include "nn/dry_run.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// Notes the order in which parameters become final, and behind how much of backward.
class OrderRecorder : public ReadyListener {
 public:
  explicit OrderRecorder(const WorkTotals& backward) : backward_(backward) {}
  void gradient_ready(const Parameter& parameter) override {
    order.push_back(&parameter);
    flops[parameter.id] = backward_.flops;
  }
  std::vector<const Parameter*> order;
  std::map<int, double> flops;  // by Parameter::id

 private:
  const WorkTotals& backward_;
};

/// The loss of a batch of `samples`, as the dry run has it.
Variable forward(DryRun& run, Tape& tape, const BatchSpec& spec, std::int64_t samples,
                 const Pass& pass) {
  Batch batch(spec.activations);
  for (const TensorSpec& tensor : spec.tensors) {
    const View value = run.external(tensor.shape_of(samples), tensor.dtype, tensor.layout);
    batch.add(tensor.name, tensor.wants_gradient ? tape.input(value) : tape.constant(value));
  }
  return pass(tape, batch);
}

/// What backward of `result` begins with.
View seed_of(DryRun& run, const BatchSpec& spec, const Variable& result) {
  if (!spec.hands_on || result.absent()) return run.external({1}, DType::f32, Layout::nchw);
  return run.external(result.shape(), result.dtype(), result.layout());
}

/// A parameter that a layer has taken, and that no operation knows, would not be learnt.
void require_uses(const Tape& tape, const std::vector<const Parameter*>& parameters) {
  for (const Parameter* parameter : parameters) {
    if (!tape.asked_for(*parameter) || tape.uses(*parameter) > 0 || parameter->is_frozen) continue;
    throw ContractError(
        "the parameter " + parameter->name +
        " is taken by a layer and given to no recorded operation, so it would not be "
        "learnt; name it among the inputs of Tape::record()");
  }
}

/// Runs a pass of the whole batch, and says more where it does not fit.
template <class Run>
void run_whole(const BatchSpec& batch, const Run& run) {
  try {
    run(batch.samples());
  } catch (const OutOfMemoryError&) {
    throw OutOfMemoryError("the activations of a batch of " + std::to_string(batch.samples()) +
                           " samples do not fit into the " + std::to_string(batch.memory >> 20) +
                           " MiB of memory; use a smaller batch, or cut the model into stages, "
                           "--stages 2 on two devices");
  }
}

std::int64_t aligned(std::int64_t element) {
  return (element + Plan::kArenaAlignment - 1) / Plan::kArenaAlignment * Plan::kArenaAlignment;
}

/// What lies apart among the model's parameters that all ranks have.
enum class Apart : std::uint8_t { frozen, head, none };

Apart apart_of(const Parameter& parameter, bool cut) {
  if (cut || parameter.of_loss) return Apart::none;
  return parameter.is_frozen ? Apart::frozen : parameter.is_head ? Apart::head : Apart::none;
}

/// One behind the other, in `order`; those that are frozen before all others, then those of a rate
/// of their own; those whose rows are cut behind all others, and the loss's own at the very end.
/// Where a rank is alone it has all rows, as if they were replicated.
void lay_out(const std::vector<const Parameter*>& order, const Tape& tape, bool alone, Plan& plan) {
  const auto placement_of = [alone](const Parameter& parameter) {
    return alone ? Placement::replicated : parameter.placement;
  };
  const auto lay_out_those = [&](bool cut, bool of_loss, Apart apart = Apart::none) {
    const std::int64_t before = plan.elements;
    for (const Parameter* parameter : order) {
      if ((placement_of(*parameter) == Placement::rows) != cut) continue;
      if (parameter->of_loss != of_loss || apart_of(*parameter, cut) != apart) continue;
      const std::int64_t begin = aligned(plan.elements), count = parameter->held().count();
      plan.parameters.push_back({.name = parameter->name,
                                 .shape = parameter->held(),
                                 .id = parameter->id,
                                 .uses = tape.uses(*parameter),
                                 .begin = begin,
                                 .end = begin + count,
                                 .placement = placement_of(*parameter),
                                 .of_loss = of_loss,
                                 .rows = cut ? parameter->shape[0] : 0,
                                 .gradient_rows = parameter->sampling ? parameter->room : -1,
                                 .is_written_once = parameter->is_written_once});
      plan.elements = begin + count;
      plan.parameter_count += parameter->shape.count();
    }
    plan.elements = aligned(plan.elements);
    if (cut) plan.sharded += plan.elements - before;
    if (of_loss) plan.of_loss += plan.elements - before;
  };
  lay_out_those(false, false, Apart::frozen);
  plan.frozen = plan.elements;
  lay_out_those(false, false, Apart::head);
  plan.head = plan.elements - plan.frozen;
  for (const bool cut : {false, true}) {
    for (const bool of_loss : {false, true}) lay_out_those(cut, of_loss);
  }
  plan.rows_apart = plan.sharded;
  for (const PlannedParameter& planned : plan.parameters) {
    require(!planned.is_written_once || planned.of_loss, "plan_training",
            "an operation adds logical shards of the loss's own parameters alone");
    if (planned.is_written_once) {
      plan.rows_apart = std::min(plan.rows_apart, planned.begin - plan.replicated());
    }
    require(planned.is_written_once || plan.rows_apart == plan.sharded, "plan_training",
            "an operation adds logical shards of all of the loss's own parameters, or of none");
    if (planned.gradient_rows < 0) continue;
    require(&planned == &plan.parameters.back(), "plan_training",
            "one parameter at most is sampled by rows, and it is the loss's");
    plan.without_gradient = plan.elements - aligned(planned.gradient_end());
  }
  const std::int64_t rows = std::max<std::int64_t>(0, plan.with_gradient() - plan.replicated());
  plan.rows_apart = std::min(plan.rows_apart, rows);
}

/// Calls run(n) for every batch that is smaller than `batch`. The arena's best fit may pack one
/// worse than a larger one where a model branches, and a short last batch must fit as well.
template <class Run>
void for_smaller_batches(const BatchSpec& batch, const Run& run) {
  if (!batch.may_be_shorter) return;
  for (std::int64_t n = 1; n < batch.samples(); ++n) {
    try {
      run(n);
    } catch (const ContractError&) {
      return;  // a model for batches of one size: it will not be given others
    }
  }
}

}  // namespace

Variable model_input(Tape& tape, const View& batch, DType activations) {
  return cast(tape.constant(batch), activations);
}

BatchSpec batch_of(const InputSpec& input) {
  return {.tensors = {{kImages, input.shape, input.layout},
                      {kTargets, {input.shape[0]}, Layout::nchw, DType::i32}},
          .activations = input.activations,
          .images = input.layout,
          .memory = input.memory};
}

Pass pass_of(Layer& model, const LossFunction& loss) {
  require(loss != nullptr, "plan_training", "the loss is an empty function");
  return [&model, loss](Tape& tape, const Batch& batch) {
    const Variable output = model.forward(tape, batch.input(kImages));
    require(!output.absent(), "the model",
            "returns an empty variable; its forward() should return one");
    return loss(output, batch[kTargets]);
  };
}

Plan plan_training(Layer& model, const Registry& registry, const InputSpec& input,
                   const LossFunction& loss, bool fuse) {
  return plan_training(registry, batch_of(input), pass_of(model, loss), fuse);
}

std::int64_t plan_evaluation(Layer& model, const Registry& registry, const InputSpec& input,
                             const LossFunction& loss, bool fuse) {
  return plan_evaluation(registry, batch_of(input), pass_of(model, loss), fuse);
}

Plan plan_training(const Registry& registry, const BatchSpec& batch, const Pass& pass, bool fuse) {
  DryRun run(registry, batch.activations, batch.images);
  Arena activations(run.device, batch.memory), step(run.device, batch.memory);
  Tape tape(run.device, activations, registry.parameters);
  tape.keep_steps_in(step);
  Plan plan;
  OrderRecorder recorder(plan.backward);
  tape.check_layers();
  run.device.compute().set_totals(&plan.forward);
  tape.begin({.fuse = fuse, .axis = run.axis(batch.samples())});
  run_whole(batch, [&](std::int64_t samples) {
    const Variable result = forward(run, tape, batch, samples, pass);
    run.device.compute().set_totals(&plan.backward);
    tape.backward(result, seed_of(run, batch, result), {}, &recorder);
  });
  run.device.compute().set_totals(nullptr);
  require_uses(tape, recorder.order);

  lay_out(recorder.order, tape, registry.along.alone(), plan);
  for (PlannedParameter& planned : plan.parameters) {
    planned.final_flops = recorder.flops.at(planned.id);
  }
  for (const RunningStatistics* running : registry.running) {
    plan.running_elements += running_update_size(running->mean.shape.count());
  }
  for_smaller_batches(batch, [&](std::int64_t samples) {
    tape.begin({.fuse = fuse, .axis = run.axis(batch.samples())});
    const Variable result = forward(run, tape, batch, samples, pass);
    tape.backward(result, seed_of(run, batch, result));
  });
  plan.activation_bytes = activations.high_water();
  plan.step_bytes = step.high_water();
  plan.activations = batch.activations;
  plan.images = batch.images;
  return plan;
}

std::int64_t plan_evaluation(const Registry& registry, const BatchSpec& batch, const Pass& pass,
                             bool fuse) {
  DryRun run(registry, batch.activations, batch.images);
  Arena activations(run.device, batch.memory);
  Tape tape(run.device, activations, registry.parameters);
  const auto forward_of = [&](std::int64_t samples) {
    tape.begin({.training = false, .fuse = fuse, .axis = run.axis(batch.samples())});
    forward(run, tape, batch, samples, pass);
  };
  run_whole(batch, forward_of);
  for_smaller_batches(batch, forward_of);
  return activations.high_water();
}

}  // namespace ringlet::nn
