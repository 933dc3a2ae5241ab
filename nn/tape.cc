#include "nn/tape.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/elementwise.h"
#include "nn/recorded_graph.h"

namespace ringlet::nn {

View Variable::value() const {
  require(tape_ != nullptr, "Variable::value", "the variable is empty; a layer should return one");
  const View& whole = tape_->node(*this).value;
  return whole.shape() == shape_ ? whole : whole.reshaped(shape_);
}

Variable Variable::reshaped(const Shape& shape) const {
  const Variable seen(tape(), node_, shape);
  if (tape_->graph_ != nullptr) tape_->graph_->add_reshape(*this, seen);
  return seen;
}

bool Backward::wants(const Variable& x) const {
  return !x.absent() && tape_.node(x).wants_gradient;
}

View Backward::gradient(const Variable& y) const {
  tape_.take_seed(tape_.node(y));
  const View& whole = tape_.node(y).gradient;
  return whole.shape() == y.shape() ? whole : whole.reshaped(y.shape());
}

ConstView Backward::gradient_to_read(const Variable& y) const {
  const ConstView whole = tape_.node(y).seeded ? tape_.seed_ : tape_.node(y).gradient;
  return whole.shape() == y.shape() ? whole : whole.reshaped(y.shape());
}

Backward::Target Backward::target(const Variable& x) const {
  float beta = 0;
  const Tape::Node& node = tape_.node(x);
  const View whole = tape_.write_target(tape_.node(x), beta);
  if (node.parameter != nullptr && node.parameter->sampling) return {whole, beta};  // of some rows
  return {whole.shape() == x.shape() ? whole : whole.reshaped(x.shape()), beta};
}

Tape::Tape(Device& device, Arena& arena, std::span<Parameter* const> parameters)
    : device_(device),
      arena_(arena),
      parameters_(parameters.begin(), parameters.end()),
      node_of_parameter_(parameters.size(), -1),
      marks_targets_(device.id().kind == DeviceKind::cpu) {}

std::size_t Tape::index_of(const Variable& x) const {
  require(!x.absent(), "Tape", "the variable is empty; ask absent() before");
  const auto index = static_cast<std::size_t>(x.node());
  require(&x.tape() == this && index < nodes_.size(), "Tape",
          "the variable is of another tape, or of a step that is over; keep none from one step to "
          "the next");
  return index;
}

void Tape::begin(const StepContext& context) {
  context_ = context;
  repeatable_ = true;
  backward_done_ = false;
  anything_is_learnt_ = false;
  nodes_.clear();
  steps_.clear();
  inputs_.clear();
  kept_.clear();
  kept_recorded_ = 0;
  node_of_parameter_.assign(parameters_.size(), -1);
  chunk_ = 0;
  chunk_used_ = 0;
  arena_.reset();
  if (step_arena_ != nullptr) step_arena_->reset();
}

int Tape::add_node(const Node& node) {
  anything_is_learnt_ = anything_is_learnt_ || node.wants_gradient;
  nodes_.push_back(node);
  return static_cast<int>(nodes_.size()) - 1;
}

Variable Tape::constant(const View& value) {
  require(!value.absent() || value.count() == 0, "Tape::constant",
          "the view is empty; give one of the batch's memory");
  return {*this, add_node({.value = value}), value.shape()};
}

Variable Tape::input(const View& value) {
  const Variable x = constant(value);
  Node& made = node(x);
  made.wants_gradient = context_.training;
  made.is_input = true;
  anything_is_learnt_ = anything_is_learnt_ || made.wants_gradient;
  return x;
}

ConstView Tape::gradient(const Variable& input) const {
  const Node& known = nodes_[index_of(input)];
  require(known.is_input && backward_done_, "Tape::gradient",
          "is of a value of input(), after backward()");
  return known.gradient.shape() == input.shape() ? known.gradient
                                                 : known.gradient.reshaped(input.shape());
}

Variable Tape::parameter(Parameter& parameter) {
  const auto id = static_cast<std::size_t>(parameter.id);
  require(id < parameters_.size() && parameters_[id] == &parameter, "Tape::parameter",
          "the parameter is not one of this model's; its layer should register it");
  int& known = node_of_parameter_[id];
  if (known < 0) {
    known = add_node({.value = parameter.value,
                      .parameter = &parameter,
                      .wants_gradient = !parameter.is_frozen});
  }
  const Variable x(*this, known, parameter.held());
  if (graph_ != nullptr) graph_->add_parameter(x, parameter);
  return x;
}

Variable Tape::make(const Shape& shape, Layout layout, DType dtype) {
  const View value = arena_.allocate(shape, dtype, layout);
  return {
      *this,
      add_node(
          {.value = value, .owns_value = true, .recorded = !anything_is_learnt_, .layer = layer_}),
      shape};
}

View Tape::keep(const Shape& shape, Layout layout, DType dtype) {
  kept_.push_back(arena_.allocate(shape, dtype, layout));
  return kept_.back();
}

View Tape::keep_for_step(const Shape& shape, DType dtype) {
  require(step_arena_ != nullptr, "Tape::keep_for_step",
          "there is no memory for it; say where it is by keep_steps_in()");
  return step_arena_->allocate(shape, dtype);
}

bool Tape::wants_gradient(const Variable& x) const {
  return context_.training && nodes_[index_of(x)].wants_gradient;
}

ConstView Tape::factor(const Variable& weight, DType dtype) const {
  const Node& node = nodes_[index_of(weight)];
  if (node.value.dtype() == dtype) return weight.value();
  require(node.parameter != nullptr && !node.parameter->narrow.absent() &&
              node.parameter->narrow.dtype() == dtype,
          "Tape::factor",
          "the weights have no values of the activations' type; the plan should be for an input "
          "of this type (InputSpec::activations)");
  const View& whole = node.parameter->narrow;
  return whole.shape() == weight.shape() ? whole : whole.reshaped(weight.shape());
}

void Tape::add_to_graph(const char* operation, std::initializer_list<Variable> inputs,
                        const Variable& output, std::any spec) {
  graph_->add(operation, inputs, output, std::move(spec));
}

namespace {

/// "layer fc1: "; nothing outside layers that have a name.
std::string in_layer(const char* layer) {
  return *layer == 0 ? "" : std::string("layer ") + layer + ": ";
}

}  // namespace

/// Constants and parameters are no operation's. Where nothing is learnt before a value, as in what
/// prepares the images, no gradient is lost.
void Tape::require_recorded(const Node& value) const {
  if (!value.owns_value || value.recorded) return;
  throw ContractError(in_layer(value.layer) +
                      "a value comes from Tape::make() and from no operation, so what is before it "
                      "would get no gradient and learn nothing; call Tape::record() for it");
}

int Tape::targets_of(const Step& step, int input) const {
  const int node = inputs_[static_cast<std::size_t>(step.first_input + input)];
  return nodes_[static_cast<std::size_t>(node)].targets;
}

void Tape::require_targets(const Step& step, const std::vector<int>& before) const {
  for (int i = 0; i < step.inputs; ++i) {
    const Node& input =
        nodes_[static_cast<std::size_t>(inputs_[static_cast<std::size_t>(step.first_input + i)])];
    if (!input.wants_gradient || targets_of(step, i) > before[static_cast<std::size_t>(i)])
      continue;
    const std::string which = input.parameter != nullptr ? "the parameter " + input.parameter->name
                                                         : "its input " + std::to_string(i + 1);
    throw ContractError(in_layer(step.layer) + "the backward of " + step.operation +
                        " gives no gradient to " + which +
                        ", so it would not be learnt; call Backward::target() for each input that "
                        "wants one, and in a dry run too");
  }
}

bool Tape::begin_step(const char* operation, std::initializer_list<Variable> inputs,
                      const Variable& output) {
  require(!output.absent(), operation, "the operation that is recorded has no output");
  node(output).recorded = true;
  if (checks_layers_ && context_.training) {
    for (const Variable& input : inputs) {
      if (!input.absent()) require_recorded(node(input));
    }
  }
  if (inspector_) inspector_(layer_, operation, output.value());
  bool wanted = false;
  for (const Variable& input : inputs) {
    wanted = wanted || (!input.absent() && node(input).wants_gradient);
  }
  if (!wanted || !context_.training) return false;

  Step step{.operation = operation, .layer = layer_, .output = output.node(), .device = &device_};
  step.first_input = static_cast<int>(inputs_.size());
  for (const Variable& input : inputs) {
    if (input.absent()) continue;
    inputs_.push_back(input.node());
    ++node(input).pending;
    ++node(input).uses;
  }
  step.inputs = static_cast<int>(inputs_.size()) - step.first_input;
  step.first_kept = static_cast<int>(kept_recorded_);
  step.kept = static_cast<int>(kept_.size() - kept_recorded_);
  kept_recorded_ = kept_.size();
  node(output).wants_gradient = true;
  steps_.push_back(step);
  return true;
}

void Tape::end_step(void* closure, void (*call)(void*, Backward&)) {
  steps_.back().closure = closure;
  steps_.back().call = call;
}

void* Tape::closure_memory(std::size_t bytes, std::size_t alignment) {
  require(bytes + alignment <= kChunkBytes, "Tape::record", "the closure is too large");
  if (!chunks_.empty()) {
    chunk_used_ = (chunk_used_ + alignment - 1) / alignment * alignment;
    if (chunk_used_ + bytes > kChunkBytes) {
      ++chunk_;
      chunk_used_ = 0;
    }
  }
  if (chunk_ == chunks_.size()) chunks_.push_back(std::make_unique<std::byte[]>(kChunkBytes));
  void* memory = chunks_[chunk_].get() + chunk_used_;
  chunk_used_ += bytes;
  return memory;
}

namespace {

// A NaN that no arithmetic makes, as f32 and, in either half, as bf16 and f16.
constexpr std::uint32_t kMark = 0x7FA57FA5;

std::size_t bytes_of_mark(const View& view) {
  return std::min(sizeof kMark, static_cast<std::size_t>(size_of(view.dtype())));
}

/// Puts the mark over the first element, which is one of sample 0 in every layout.
void mark(const View& view) { std::memcpy(view.data(), &kMark, bytes_of_mark(view)); }

bool is_marked(const View& view) {
  return std::memcmp(view.data(), &kMark, bytes_of_mark(view)) == 0;
}

}  // namespace

/// Of the targets that the step's closure was to overwrite.
void Tape::require_written(const Step& step) {
  for (const View& target : marked_) {
    if (!is_marked(target)) continue;
    throw ContractError(in_layer(step.layer) + "the backward of " + step.operation +
                        " asks Backward::target() where a gradient " + target.shape().to_string() +
                        " goes, and does not write it; write all of it where beta is 0, zeros too");
  }
  marked_.clear();
}

Backward::RowTargets Backward::row_targets(const Variable& x) const {
  Tape::Node& node = tape_.node(x);
  require(node.parameter != nullptr && !node.parameter->gradients_by_rank.empty(),
          "Backward::row_targets", "no parameter whose rows are cut; ask target() for it");
  const std::vector<View>& views = node.parameter->gradients_by_rank;
  const bool adds = tape_.adds(node);
  node.gradient = views.front();
  node.written = true;
  ++node.targets;
  for (const View& view : views) {
    if (tape_.marks_targets_ && !adds && view.bytes() > 0) mark(tape_.marked_.emplace_back(view));
  }
  return {views, adds ? 1.0F : 0.0F};
}

View Backward::step_target(const Variable& x, bool is_last) const {
  Tape::Node& node = tape_.node(x);
  require(node.parameter != nullptr && node.parameter->is_written_once, "Backward::step_target",
          "no parameter whose gradient comes at the end of a step; ask row_targets() for it");
  const View& view = node.parameter->gradients_by_rank.front();
  node.gradient = view;
  node.written = true;
  ++node.targets;
  if (!is_last) return {};
  if (tape_.marks_targets_ && view.bytes() > 0) mark(tape_.marked_.emplace_back(view));
  return view;
}

bool Tape::adds(const Node& node) const {
  return node.written || (node.parameter != nullptr && accumulate_);
}

View Tape::write_target(Node& node, float& beta) {
  require(node.wants_gradient, "Backward::target",
          "nobody wants this gradient; ask Backward::wants() first");
  if (node.parameter != nullptr && !node.parameter->gradients_by_rank.empty()) {
    throw ContractError("Backward::target: the rows of the parameter " + node.parameter->name +
                        " are cut over ranks, and this operation sees one rank's samples; give it "
                        "to one that asks row_targets(), such as nn::sharded_linear");
  }
  if (node.gradient.absent() && node.parameter != nullptr) {
    node.gradient = node.parameter->gradient;
  } else if (node.gradient.absent()) {
    node.gradient = arena_.allocate(node.value.shape(), node.value.dtype(), node.value.layout());
    node.owns_gradient = true;
  }
  const bool add = adds(node);
  node.written = true;
  ++node.targets;
  if (marks_targets_ && !add && node.gradient.bytes() > 0)
    mark(marked_.emplace_back(node.gradient));
  beta = add ? 1.0F : 0.0F;
  return node.gradient;
}

void Tape::take_seed(Node& node) {
  if (!node.seeded) return;
  node.seeded = false;
  copy(stream(), seed_, node.gradient);
}

namespace {

bool are_alike(const ConstView& a, const ConstView& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && a.layout() == b.layout();
}

void require_one_number(const char* what, const ConstView& view, const char* remedy) {
  if (view.count() == 1 && view.dtype() == DType::f32) return;
  throw ContractError(std::string("Tape::backward: the ") + what + " is " + describe(view) +
                      " and has to be one f32 number; " + remedy);
}

/// Groups the steps of backward by layer for a trace: one span "backward conv1".
class LayerSpans {
 public:
  explicit LayerSpans(Tracer* tracer) : tracer_(tracer) {}
  ~LayerSpans() { close(); }
  LayerSpans(const LayerSpans&) = delete;
  LayerSpans& operator=(const LayerSpans&) = delete;

  void enter(const char* layer) {
    if (tracer_ == nullptr || *layer == 0) return close();
    if (layer_ != nullptr && std::strcmp(layer, layer_) == 0) return;
    close();
    layer_ = layer;
    begin_ns_ = now_ns();
  }
  void close() {
    if (layer_ == nullptr) return;
    tracer_->add(std::string("backward ") + layer_, "layer", begin_ns_, now_ns());
    layer_ = nullptr;
  }

 private:
  Tracer* tracer_;
  const char* layer_ = nullptr;
  std::int64_t begin_ns_ = 0;
};

}  // namespace

void Tape::backward(const Variable& y, const View& dy, const BackwardOptions& options,
                    ReadyListener* listener) {
  require(!dy.absent(), "Tape::backward", "the seed is an empty view; give one that holds 1, say");
  if (!are_alike(y.value(), dy)) {
    require_one_number("loss", y.value(),
                       "sum it over the batch, as nn::softmax_cross_entropy does, or give a "
                       "gradient that is like it");
    require_one_number("seed", dy, "it is what the loss counts: f32 [1] that holds 1, say");
  }
  if (checks_layers_) require_recorded(node(y));
  require(!backward_done_, "Tape::backward", "a step goes backward once; begin() the next one");
  backward_done_ = true;
  marked_.clear();
  accumulate_ = options.accumulate;
  for (Parameter* parameter : parameters_) {
    if (uses(*parameter) == 0) finish(*parameter, false, options, listener);
  }
  start_from(y, dy);
  LayerSpans spans(stream().tracer());
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    spans.enter(step.layer);
    if (nodes_[static_cast<std::size_t>(step.output)].written) run(step);
    count_down(step, options, listener);
    release(step);
  }
  marks_targets_ = false;
  zero_unreached_inputs();
}

void Tape::zero_unreached_inputs() {
  for (Node& input : nodes_) {
    if (!input.is_input || !input.wants_gradient || input.written) continue;
    const View& value = input.value;
    const View zeros = arena_.allocate(value.shape(), DType::f32, value.layout());
    fill(stream(), 0, zeros);
    input.gradient = zeros;
    if (value.dtype() == DType::f32) continue;
    input.gradient = arena_.allocate(value.shape(), value.dtype(), value.layout());
    ringlet::cast(stream(), zeros, input.gradient);
  }
}

void Tape::start_from(const Variable& y, const View& dy) {
  Node& root = node(y);
  require(root.owns_value, "Tape::backward", "begins with a value that an operation has made");
  // Like y, which may be a view of the root: then its memory is the root's in that layout.
  seed_ = dy.shape() == root.value.shape() ? dy
          : are_alike(y.value(), dy)
              ? View(dy.address(), root.value.shape(), dy.dtype(), root.value.layout())
              : dy.reshaped(root.value.shape());
  root.gradient =  // for a closure that overwrites it
      arena_.allocate(root.value.shape(), root.value.dtype(), root.value.layout());
  root.owns_gradient = true;
  root.seeded = true;
  root.written = true;
  root.owns_value = false;  // not given back: the user reads the loss
}

void Tape::run(const Step& step) {
  Backward context(*this, step.device->compute());
  if (!checks_layers_) {
    step.call(step.closure, context);
    return require_written(step);
  }
  std::vector<int> before;
  for (int i = 0; i < step.inputs; ++i) before.push_back(targets_of(step, i));
  try {
    step.call(step.closure, context);
  } catch (const ContractError& error) {
    throw ContractError(
        in_layer(step.layer) + "the backward of " + step.operation + ": " + error.what(),
        error.where());
  }
  require_targets(step, before);
}

void Tape::count_down(const Step& step, const BackwardOptions& options, ReadyListener* listener) {
  for (int i = 0; i < step.inputs; ++i) {
    Node& input =
        nodes_[static_cast<std::size_t>(inputs_[static_cast<std::size_t>(step.first_input + i)])];
    if (--input.pending == 0 && input.parameter != nullptr) {
      finish(*input.parameter, input.written, options, listener);
    }
  }
}

void Tape::finish(Parameter& parameter, bool written, const BackwardOptions& options,
                  ReadyListener* listener) {
  if (!written && !options.accumulate && !parameter.is_frozen) zero(parameter);
  if (options.last && listener != nullptr) listener->gradient_ready(parameter);
}

void Tape::zero(const Parameter& parameter) {
  if (parameter.is_written_once) return;  // behind the last pass that writes it, maybe
  if (parameter.gradients_by_rank.empty()) return fill(stream(), 0, parameter.gradient);
  for (const View& view : parameter.gradients_by_rank) fill(stream(), 0, view);
}

void Tape::release(const Step& step) {
  Node& output = nodes_[static_cast<std::size_t>(step.output)];
  for (int i = 0; i < step.kept; ++i) {
    arena_.release(kept_[static_cast<std::size_t>(step.first_kept + i)]);
  }
  if (output.owns_value) arena_.release(output.value);
  if (output.owns_gradient) arena_.release(output.gradient);
  output.owns_value = output.owns_gradient = false;
}

void Tape::backward_of_nothing(const BackwardOptions& options, ReadyListener* listener) {
  for (Parameter* parameter : parameters_) finish(*parameter, false, options, listener);
}

Tape::Scope::Scope(Tape& tape, const std::string& name)
    : tape_(tape), outer_(tape.layer_), begin_ns_(now_ns()) {
  tape_.layer_ = name.c_str();
  if (tape_.graph_ != nullptr) tape_.graph_->enter(name);
}

Tape::Scope::~Scope() {
  if (Tracer* tracer = tape_.stream().tracer()) {
    tracer->add(std::string("forward ") + tape_.layer_, "layer", begin_ns_, now_ns());
  }
  tape_.layer_ = outer_;
  if (tape_.graph_ != nullptr) tape_.graph_->leave();
}

std::vector<const Parameter*> Tape::parameters_without_gradient() const {
  std::vector<const Parameter*> unused;
  for (const Parameter* parameter : parameters_) {
    const int node = node_of_parameter_[static_cast<std::size_t>(parameter->id)];
    if (node < 0 || !nodes_[static_cast<std::size_t>(node)].written) unused.push_back(parameter);
  }
  return unused;
}

int Tape::uses(const Parameter& parameter) const {
  const int node = node_of_parameter_[static_cast<std::size_t>(parameter.id)];
  return node < 0 ? 0 : nodes_[static_cast<std::size_t>(node)].uses;
}

}  // namespace ringlet::nn
