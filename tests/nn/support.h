// Shared by the tests of nn, for devices on the host: a model set up with all its memory, a model
// made of a function, a listener that takes notes, and operations that make a gradient visible.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "nn/layer.h"
#include "nn/ops/softmax_cross_entropy.h"
#include "nn/parameters.h"
#include "nn/plan.h"
#include "nn/tape.h"
#include "tests/support/tensors.h"

namespace ringlet::nn {

using Log = std::vector<std::string>;

/// Notes "ready NAME" for each parameter that becomes final.
class ReadyLog : public ReadyListener {
 public:
  explicit ReadyLog(Log& log) : log_(log) {}
  void gradient_ready(const Parameter& parameter) override {
    log_.push_back("ready " + parameter.name);
  }

 private:
  Log& log_;
};

/// A model made of parameters and a function, for graphs that no layer has.
class Graph : public Layer {
 public:
  using Function = std::function<Variable(Tape& tape, const Variable& x)>;

  Parameter& add(const std::string& name, const Shape& shape, float start = 0) {
    names_.push_back(name);
    parameters_.push_back(std::make_unique<Parameter>(shape, Initializer::constant(start)));
    return *parameters_.back();
  }
  StateBuffer& add_buffer(const std::string& name, const Shape& shape, float start) {
    buffer_names_.push_back(name);
    buffers_.push_back(std::make_unique<StateBuffer>(shape, start));
    return *buffers_.back();
  }
  void set(Function function) { function_ = std::move(function); }

  Variable forward(Tape& tape, const Variable& x) override { return function_(tape, x); }
  void register_in(Registry& registry, const std::string& prefix) override {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      registry.add(*parameters_[i], prefix + names_[i]);
    }
    for (std::size_t i = 0; i < buffer_names_.size(); ++i) {
      registry.add(*buffers_[i], prefix + buffer_names_[i]);
    }
  }

 private:
  std::vector<std::string> names_, buffer_names_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<std::unique_ptr<StateBuffer>> buffers_;
  Function function_;
};

/// For models whose output is the loss already.
inline Variable output_is_loss(const Variable& output, const Variable&) { return output; }

struct RigOptions {
  LossFunction loss = softmax_cross_entropy;
  int gradient_arenas = 1;
  std::uint64_t seed = 1;
  DeviceOptions device{};
  bool fuse = true;
};

/// A device, a model planned for `input`, and the memory that the plan asks for, not a byte more.
struct Rig {
  Rig(std::unique_ptr<Layer> the_model, const InputSpec& input, const RigOptions& options = {})
      : device(open_device({}, options.device)),
        model(std::move(the_model)),
        loss(options.loss),
        registry(register_model(*model)),
        fuse(options.fuse),
        plan(plan_training(*model, registry, input, loss, fuse)),
        parameters(*device, registry, plan, options.gradient_arenas),
        activations(*device, plan.activation_bytes),
        tape(*device, activations, registry.parameters),
        seed(test::upload<float>(*device, {1}, {1})) {
    parameters.initialize(options.seed);
  }

  Parameter& parameter(const std::string& name) const {
    for (Parameter* parameter : registry.parameters) {
      if (parameter->name == name) return *parameter;
    }
    throw ContractError("the model has no parameter " + name);
  }
  std::vector<float> gradient(const std::string& name) const {
    return test::read(parameter(name).gradient);
  }
  /// Begins a step and computes its loss.
  Variable forward(const View& x, const View& labels, StepContext context = {}) {
    context.fuse = fuse;
    tape.begin(context);
    parameters.narrow_values(tape.stream());
    const Variable input = model_input(tape, x, plan.activations);
    return loss(model->forward(tape, input), tape.constant(labels));
  }
  /// A whole step; returns the loss.
  float step(const View& x, const View& labels, const BackwardOptions& options = {},
             ReadyListener* listener = nullptr) {
    const Variable result = forward(x, labels);
    tape.backward(result, seed, options, listener);
    return read_scalar(tape.stream(), result.value());
  }
  /// A whole step of a model that needs no labels and whose input is `x`.
  float step(const View& x) { return step(x, test::upload<std::int32_t>(*device, {1}, {0})); }

  std::unique_ptr<Device> device;
  std::unique_ptr<Layer> model;
  LossFunction loss;
  Registry registry;
  bool fuse;
  Plan plan;
  Parameters parameters;
  Arena activations;
  Tape tape;
  Tensor seed;  // 1
};

/// sum of x * coefficients, f32 [1]; the gradient of x is the coefficients. They must have x's kind
/// and outlive the step.
inline Variable weighted_sum(const Variable& x, const ConstView& coefficients) {
  Tape& tape = x.tape();
  const Variable y = tape.make({1}, Layout::nchw);
  if (tape.device().id().kind != DeviceKind::meta) {
    const std::vector<float> values = test::read(x.value()), weights = test::read(coefficients);
    float sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
    *y.value().f32() = sum;
  }
  tape.record("weighted_sum", {x}, y, [=](Backward& backward) {
    const auto [dx, beta] = backward.target(x);
    if (backward.stream().device().id().kind == DeviceKind::meta) return;
    scale(backward.stream(), *backward.gradient(y).f32(), coefficients, beta, dx);
  });
  return y;
}

/// x itself; appends `name` to `log` when backward passes.
inline Variable logged(const Variable& x, const char* name, Log* log) {
  Tape& tape = x.tape();
  const Variable y = tape.make(x.shape(), x.layout());
  copy(tape.stream(), x.value(), y.value());
  tape.record("logged", {x}, y, [=](Backward& backward) {
    if (backward.stream().device().id().kind != DeviceKind::meta) log->emplace_back(name);
    const auto [dx, beta] = backward.target(x);
    scale(backward.stream(), 1, backward.gradient(y), beta, dx);
  });
  return y;
}

/// The constant x as a value that wants a gradient, which backward copies to `gradient` (x's kind).
/// `wanting` is any variable that wants a gradient; it gets zeros from here.
inline Variable probed(const Variable& x, const Variable& wanting, const View& gradient) {
  Tape& tape = x.tape();
  const Variable y = tape.make(x.shape(), x.layout());
  copy(tape.stream(), x.value(), y.value());
  tape.record("probed", {wanting}, y, [=](Backward& backward) {
    copy(backward.stream(), backward.gradient(y), gradient);
    const auto [zeros, beta] = backward.target(wanting);
    if (beta == 0) fill(backward.stream(), 0, zeros);
  });
  return y;
}

}  // namespace ringlet::nn
