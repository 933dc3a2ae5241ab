#include "train/forecast/unit_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/median.h"
#include "base/memory_limits.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "nn/axis_alone.h"
#include "nn/layers/linear.h"
#include "nn/parameters.h"
#include "train/optimizers/optimizer.h"
#include "train/pipeline/stage_table.h"

namespace ringlet::train {

namespace {

constexpr std::uint64_t kSeed = 1;

double cost_of(const WorkTotals& work) { return work.flops + kFlopsPerByte * work.bytes; }

nn::StageCut cut_of(const CutModel& model, int begin, int end) {
  return {.begin = begin, .end = end, .layers = model.units.in_words({begin, end})};
}

/// Of what comes over the cut before a unit; 0 at the model's ends.
std::int64_t bytes_into(const CutModel& model, int unit) {
  return unit == 0 || unit == model.units.count() ? 0 : model.units[unit].input.bytes;
}

std::int64_t bytes_into(const CutModel& model, int unit, std::int64_t samples) {
  if (unit == 0 || unit == model.units.count()) return 0;
  const nn::Crossing& value = model.units[unit].input;
  return storage_count(value.shape.with_batch(samples), value.layout) * size_of(value.dtype);
}

ReplicaSpec spec_of(const CutModel& model, const nn::StageCut& cut) {
  ReplicaSpec spec = model.spec;
  spec.stage = std::make_shared<const StageSpec>(StageSpec{model.units, cut});
  return spec;
}

/// Units [begin, end) as a stage of its own, with its plan. The last one has the loss, too.
struct PlannedPart {
  /// `runs`: batches will be run, and may be shorter than planned.
  PlannedPart(CutModel& model, int begin, int end, bool runs)
      : cut(cut_of(model, begin, end)),
        spec(spec_of(model, cut)),
        task(task_of(spec)),
        layer(nn::stage_of(*model.model, model.units, begin, end)) {
    if (end == model.units.count()) layer = with_loss(spec, std::move(layer));
    registry = nn::register_model(*layer);
    if (registry.is_sharded()) registry.place(model.along);
    batch = batch_of(spec, spec.max_train_batch);
    batch.may_be_shorter = runs;
    plan = nn::plan_training(registry, batch, pass_of(spec, *task, *layer, true), spec.fuse);
  }

  nn::StageCut cut;
  ReplicaSpec spec;
  std::shared_ptr<const Task> task;
  std::unique_ptr<nn::Layer> layer;
  nn::Registry registry{};
  nn::BatchSpec batch{};
  nn::Plan plan{};
};

/// Of the stage's first pass, which also evaluates.
std::int64_t evaluation_bytes(const CutModel& model, const PlannedPart& part) {
  const std::int64_t samples = model.spec.max_eval_batch;
  nn::BatchSpec batch = batch_of(part.spec, samples);
  batch.may_be_shorter = part.batch.may_be_shorter;
  const std::int64_t activations = nn::plan_evaluation(
      part.registry, batch, pass_of(part.spec, *part.task, *part.layer, false), part.spec.fuse);
  std::int64_t beyond = std::max<std::int64_t>(0, activations - part.plan.activation_bytes);
  for (const int unit : {part.cut.begin, part.cut.end}) {
    beyond += std::max<std::int64_t>(0, bytes_into(model, unit, samples) - bytes_into(model, unit));
  }
  return beyond;
}

std::unique_ptr<Optimizer> optimizer_of(const MakeOptimizer& make, Device& device,
                                        const nn::Parameters& parameters, const Recipe& recipe) {
  return make_optimizer(device, parameters, recipe, make);
}

/// Numbers that the optimiser keeps for each parameter: asked of one for a single weight.
int numbers_kept(const MakeOptimizer& make, const Recipe& recipe) {
  const auto device = open_device({}, {.overlap = false});
  nn::Linear layer(1, 1);
  const nn::Registry registry = nn::register_model(layer);
  const nn::BatchSpec batch{.tensors = {{nn::kImages, {1, 1}}}};
  const nn::Plan plan =
      nn::plan_training(registry, batch, [&](nn::Tape& tape, const nn::Batch& tensors) {
        return layer.forward(tape, tensors[nn::kImages]);
      });
  const nn::Parameters parameters(*device, registry, plan);
  const auto optimizer = optimizer_of(make, *device, parameters, recipe);
  return static_cast<int>(std::ranges::count_if(
      optimizer->state(), [](const StateArena& arena) { return arena.is_of_parameters(); }));
}

/// Its value, gradients and state, and what a step says of running statistics.
std::int64_t standing_bytes(const nn::Plan& plan, int arenas, int kept, int shards) {
  const std::int64_t behind = nn::Parameters::kStatistics + plan.running_elements;
  const std::int64_t gradients = plan.with_gradient() + behind +
                                 (arenas - 1) * (plan.replicated_gradient() + behind) +
                                 std::max(0, shards - 1) * plan.rows_apart;
  const std::int64_t numbers = (1 + kept) * plan.elements + gradients + plan.running_elements;
  const std::int64_t narrow = is_narrow(plan.activations) ? size_of(plan.activations) : 0;
  return numbers * size_of(DType::f32) + narrow * plan.elements + plan.step_bytes;
}

/// Of an update, which reads and writes values and state, and reads gradients.
double update_cost(const nn::Plan& plan, int kept) {
  const auto bytes = static_cast<double>((3 + 2 * kept) * plan.elements * size_of(DType::f32));
  return kFlopsPerByte * bytes;
}

/// The first units of all parts.
std::vector<int> begins_of(const nn::Units& units) {
  std::vector<int> begins = units.begins();
  begins.insert(begins.begin(), 0);
  return begins;
}

/// The unit behind part `part`.
int end_of(const CutModel& model, const std::vector<int>& begins, std::size_t part) {
  return part + 1 < begins.size() ? begins[part + 1] : model.units.count();
}

Tensor filled(Device& device, const Shape& shape, DType dtype, Layout layout) {
  Tensor tensor(device, shape, dtype, layout);
  fill(device.compute(), 1e-3F, tensor);
  return tensor;
}

/// A part on a device, ready to run.
class MeasuredPart {
 public:
  MeasuredPart(CutModel& model, Device& device, int begin, int end)
      : planned_(model, begin, end, true),
        device_(device),
        parameters_(device, planned_.registry, planned_.plan),
        optimizer_(optimizer_of(model.make_optimizer, device, parameters_, model.spec.recipe)),
        activations_(device, planned_.plan.activation_bytes),
        tape_(device, activations_, planned_.registry.parameters),
        fuse_(model.spec.fuse) {
    if (planned_.plan.step_bytes > 0) {
      step_.emplace(device, planned_.plan.step_bytes);
      fill(device.compute(), 0, step_->allocate({planned_.plan.step_bytes / size_of(DType::f32)}));
      step_->reset();
      tape_.keep_steps_in(*step_);
    }
    parameters_.initialize(kSeed);
    parameters_.narrow_values(device.compute());
    const StepRates rates = optimizer_->rates_of({});
    rates_ = Tensor(device, {static_cast<std::int64_t>(rates.size())});
    copy_from_host(device.compute(), rates.data(), rates_);
    const auto& tensors = planned_.batch.tensors;
    for (std::size_t i = 1; i < tensors.size(); ++i) {
      others_.emplace_back(device, tensors[i].shape, tensors[i].dtype, tensors[i].layout);
      fill(device.compute(), 0, others_.back().view());
    }
    if (planned_.registry.is_sharded() && !planned_.registry.along.alone()) {
      axis_.emplace(planned_.registry.along, planned_.batch.samples());
    }
  }

  /// `from`: what the part before gave; absent: something of its shape. Returns what the next part
  /// takes.
  ConstView forward(const ConstView& from) {
    const nn::TensorSpec& spec = planned_.batch.tensors.front();
    if (from.absent() && in_.view().absent()) {
      in_ = filled(device_, spec.shape, spec.dtype, spec.layout);
    }
    const ConstView in = from.absent() ? ConstView(in_.view()) : from;
    // Nobody writes to what a stage takes.
    const View value(const_cast<void*>(in.address()), in.shape(), in.dtype(), in.layout());
    tape_.begin({.seed = kSeed, .fuse = fuse_, .axis = axis_ ? &*axis_ : nullptr});
    const auto& tensors = planned_.batch.tensors;
    nn::Batch batch(planned_.batch.activations);
    x_ = spec.wants_gradient ? tape_.input(value) : tape_.constant(value);
    batch.add(spec.name, x_);
    for (std::size_t i = 0; i < others_.size(); ++i) {
      batch.add(tensors[i + 1].name, tape_.constant(others_[i]));
    }
    y_ = run_forward(planned_.spec, *planned_.task, {tape_, *planned_.layer, batch});
    return y_.value();
  }

  /// Of the next part, or absent. Returns that of what it took, if somebody wants it.
  ConstView backward(const ConstView& gradient) {
    if (gradient.absent() && seed_.view().absent()) {
      seed_ = filled(device_, y_.shape(), y_.dtype(), y_.layout());
    }
    const ConstView dy = gradient.absent() ? ConstView(seed_.view()) : gradient;
    const View value(const_cast<void*>(dy.address()), dy.shape(), dy.dtype(), dy.layout());
    tape_.backward(y_, value);
    if (!planned_.batch.tensors.front().wants_gradient) return {};
    return tape_.gradient(x_);
  }

  void update() { optimizer_->step(rates_); }

 private:
  PlannedPart planned_;
  Device& device_;
  nn::Parameters parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  Arena activations_;
  nn::Tape tape_;
  bool fuse_;
  std::optional<Arena> step_{};
  std::optional<nn::AxisAlone> axis_{};
  std::deque<Tensor> others_{};  // what a batch has beside the first tensor
  Tensor rates_{}, in_{}, seed_{};
  nn::Variable x_{}, y_{};
};

template <class Work>
double seconds_of(Device& device, const Work& work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  work();
  device.compute().synchronize();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Parts [begin, end) together on a device.
class Rounds {
 public:
  /// `learns`: by part, whether it has a backward.
  Rounds(CutModel& model, Device& device, const std::vector<int>& begins, std::size_t begin,
         std::size_t end, std::vector<bool> learns)
      : device_(device), learns_(std::move(learns)) {
    for (std::size_t part = begin; part < end; ++part) {
      parts_.push_back(
          std::make_unique<MeasuredPart>(model, device, begins[part], end_of(model, begins, part)));
    }
    seconds_.resize(parts_.size());
  }

  void run(const MeasureOptions& options) {
    round();
    for (Seconds& seconds : seconds_) seconds = {};
    double spent = 0;
    const double enough = options.seconds * static_cast<double>(parts_.size());
    for (int i = 0; i < options.most && (i < options.least || spent < enough); ++i) {
      spent += round();
    }
  }

  void tell(std::size_t part, UnitCost& cost) const {
    const Seconds& seconds = seconds_[part];
    cost.forward = median_of(seconds.forward);
    cost.backward = median_of(seconds.backward);
    cost.update = median_of(seconds.update);
  }

 private:
  struct Seconds {
    std::vector<double> forward, backward, update;
  };

  double round() {
    double all = 0;
    const auto note = [&](std::vector<double>& into, const auto& work) {
      into.push_back(seconds_of(device_, work));
      all += into.back();
    };
    ConstView value, gradient;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      note(seconds_[i].forward, [&] { value = parts_[i]->forward(value); });
    }
    for (std::size_t i = parts_.size(); i-- > 0;) {
      if (!learns_[i]) break;  // nothing before it has parameters
      note(seconds_[i].backward, [&] { gradient = parts_[i]->backward(gradient); });
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      note(seconds_[i].update, [&] { parts_[i]->update(); });
    }
    return all;
  }

  Device& device_;
  std::vector<bool> learns_;
  std::vector<std::unique_ptr<MeasuredPart>> parts_;
  std::vector<Seconds> seconds_;
};

std::int64_t free_memory(const Device& device) {
  if (device.id().kind == DeviceKind::cpu) return static_cast<std::int64_t>(memory_limits().free);
  return device.free_bytes() - 2 * device.scratch_limit();
}

/// How many parts from `begin` on may be on the device together.
std::size_t end_of_run(const UnitCosts& costs, std::size_t begin, std::int64_t memory) {
  std::size_t end = begin;
  std::int64_t bytes = 0;
  for (; end < costs.parts.size(); ++end) {
    bytes += costs.parts[end].bytes + costs.parts[end].pass_bytes;
    if (bytes > memory) break;
  }
  if (end > begin) return end;
  throw OutOfMemoryError(fmt::format(
      "{} by itself needs {}, and the device has {} free; take a smaller batch, more micro-batches "
      "or --balance planned",
      costs.parts[begin].name, bytes_in_words(bytes), bytes_in_words(memory)));
}

/// Of a copy of as many bytes as the largest cut sends; 64 MiB at most.
double seconds_per_byte(Device& device, const UnitCosts& costs) {
  std::int64_t bytes = 1 << 16;
  for (const std::int64_t at_cut : costs.activation) bytes = std::max(bytes, at_cut);
  const std::int64_t count = std::min<std::int64_t>(bytes, 64 << 20) / size_of(DType::f32);
  const Tensor from = filled(device, {count}, DType::f32, Layout::nchw);
  const Tensor to(device, {count});
  const auto copy_once = [&] { copy(device.compute(), from, to); };
  copy_once();
  device.compute().synchronize();
  std::vector<double> seconds;
  for (int i = 0; i < 9; ++i) seconds.push_back(seconds_of(device, copy_once));
  return median_of(seconds) / static_cast<double>(count * size_of(DType::f32));
}

}  // namespace

CutModel make_cut_model(const ReplicaSpec& spec, const MakeOptimizer& make_optimizer,
                        const nn::AxisPosition& along) {
  const nn::BatchSpec batch = batch_of(spec, spec.max_train_batch);
  const nn::InputSpec input{.shape = batch.tensors.front().shape,
                            .layout = spec.layout,
                            .activations = batch.activations};
  std::unique_ptr<nn::Layer> model = make_body(spec);
  nn::Units units = nn::units_of(*model, nn::register_model(*model), input, spec.fuse);
  return {spec,
          input,
          std::move(model),
          std::move(units),
          make_optimizer,
          numbers_kept(make_optimizer, spec.recipe),
          along};
}

StageBytes plan_stage(CutModel& model, int begin, int end) {
  const PlannedPart part(model, begin, end, false);
  const int arenas = model.spec.gradient_arenas;
  const std::int64_t comes = bytes_into(model, begin) + bytes_into(model, end);
  return {.parameters = part.plan.parameter_count,
          .standing = standing_bytes(part.plan, arenas, model.numbers_kept, model.along.shards),
          .pass = part.plan.activation_bytes + comes,
          .kept = comes,
          .evaluation = evaluation_bytes(model, part),
          .forward = cost_of(part.plan.forward),
          .backward = cost_of(part.plan.backward),
          .update = update_cost(part.plan, model.numbers_kept)};
}

UnitCosts plan_costs(CutModel& model) {
  UnitCosts costs{.begins = begins_of(model.units), .per_byte = 2 * kFlopsPerByte};
  for (std::size_t i = 0; i < costs.begins.size(); ++i) {
    const int begin = costs.begins[i], end = end_of(model, costs.begins, i);
    const StageBytes bytes = plan_stage(model, begin, end);
    costs.parts.push_back({.name = model.units.in_words({begin, end}),
                           .forward = bytes.forward,
                           .backward = bytes.backward,
                           .update = bytes.update,
                           .bytes = bytes.standing,
                           .pass_bytes = bytes.pass - bytes_into(model, end)});
    if (i == 0) continue;
    const nn::Crossing& crossing = model.units[begin].input;
    costs.activation.push_back(crossing.bytes);
    costs.gradient.push_back(crossing.wants_gradient ? crossing.bytes : 0);
  }
  return costs;
}

UnitCosts measure_costs(CutModel& model, Device& device, const MeasureOptions& options) {
  UnitCosts costs = plan_costs(model);
  costs.measured = true;
  const std::int64_t memory = options.memory > 0 ? options.memory : free_memory(device);
  for (std::size_t begin = 0, end = 0; begin < costs.parts.size(); begin = end) {
    end = end_of_run(costs, begin, memory);
    std::vector<bool> learns;
    for (std::size_t part = begin; part < end; ++part) {
      learns.push_back(part == costs.gradient.size() || costs.gradient[part] > 0);
    }
    Rounds rounds(model, device, costs.begins, begin, end, learns);
    rounds.run(options);
    for (std::size_t part = begin; part < end; ++part) {
      rounds.tell(part - begin, costs.parts[part]);
    }
  }
  costs.per_byte = seconds_per_byte(device, costs);
  return costs;
}

std::vector<double> numbers_of(const UnitCosts& costs) {
  std::vector<double> numbers{costs.per_byte};
  for (const UnitCost& part : costs.parts) {
    numbers.insert(numbers.end(), {part.forward, part.backward, part.update});
  }
  return numbers;
}

void take_numbers(UnitCosts& costs, std::span<const double> numbers) {
  require(numbers.size() == 3 * costs.parts.size() + 1, "take_numbers",
          "the costs are those of another model");
  costs.per_byte = numbers[0];
  for (std::size_t i = 0; i < costs.parts.size(); ++i) {
    costs.parts[i].forward = numbers[3 * i + 1];
    costs.parts[i].backward = numbers[3 * i + 2];
    costs.parts[i].update = numbers[3 * i + 3];
  }
}

BalanceInput balance_input(const UnitCosts& costs, int stages, int micro_batches) {
  BalanceInput input{.units = costs.parts, .stages = stages};
  const double passes = micro_batches;
  for (UnitCost& unit : input.units) {
    unit.forward *= passes;
    unit.backward *= passes;
  }
  for (std::size_t cut = 0; cut < costs.activation.size(); ++cut) {
    const auto bytes = static_cast<double>(costs.activation[cut] + costs.gradient[cut]);
    input.transfer.push_back(passes * costs.per_byte * bytes);
  }
  return input;
}

std::vector<int> begins_of(const UnitCosts& costs, const std::vector<int>& cuts) {
  std::vector<int> begins;
  for (const int cut : cuts) begins.push_back(costs.begins.at(static_cast<std::size_t>(cut)));
  return begins;
}

}  // namespace ringlet::train
