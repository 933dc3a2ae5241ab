#include "train/onnx/onnx_graph.h"

#include <any>
#include <map>

#include "base/error.h"
#include "kernels/pool2d.h"
#include "nn/ops/batch_norm.h"
#include "nn/ops/conv2d.h"
#include "train/onnx/onnx.pb.h"

namespace ringlet::train {

namespace {

using Step = nn::RecordedGraph::Step;

void add_attribute(onnx::Node& node, const std::string& name, std::int64_t value) {
  onnx::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::Attribute::INT);
  attribute.set_i(value);
}

void add_attribute(onnx::Node& node, const std::string& name,
                   std::initializer_list<std::int64_t> values) {
  onnx::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::Attribute::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

void add_real_attribute(onnx::Node& node, const std::string& name, float value) {
  onnx::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::Attribute::FLOAT);
  attribute.set_f(value);
}

/// Rows before and after, columns before and after, in ONNX's order.
void add_padding(onnx::Node& node, const Extent2& padding) {
  add_attribute(node, "pads", {padding.h, padding.w, padding.h, padding.w});
}

/// Walks the steps; each is written by the function that its row of kOperations names.
class GraphWriter {
 public:
  GraphWriter(const nn::RecordedGraph& recorded, const HostState& weights, onnx::Graph& graph)
      : recorded_(recorded), weights_(weights), graph_(graph) {}

  /// Writes all steps; what the model is given and gives has these names.
  void write(const std::string& input, const std::string& output);

 private:
  struct Row {
    const char* operation;
    void (GraphWriter::*write)(const Step& step);
  };
  static const Row kOperations[];

  void convolution(const Step& step);
  void linear(const Step& step);
  void relu(const Step& step) { add("Relu", step); }
  void average_pool(const Step& step);
  void max_pool(const Step& step) { pool("MaxPool", step); }
  void normalization(const Step& step);
  void reshape(const Step& step);
  void sum(const Step& step) { add("Add", step); }
  void sigmoid(const Step& step) { add("Sigmoid", step); }
  void tanh(const Step& step) { add("Tanh", step); }
  void parametric_relu(const Step& step);
  void concat(const Step& step) { add_attribute(add("Concat", step), "axis", 1); }
  void multiple(const Step& step);

  const Shape& shape_of(int value) const {
    return recorded_.values().at(static_cast<std::size_t>(value)).shape;
  }
  [[noreturn]] static void refuse(const Step& step, const std::string& why) {
    const std::string where = step.layer.empty() ? "the model" : "layer " + step.layer;
    throw ContractError(where + ": " + why);
  }
  void write(const Step& step);
  /// A node of the step with its inputs; its output becomes the step's.
  onnx::Node& add(const std::string& operation, const Step& step);
  onnx::Node& pool(const char* operation, const Step& step);
  void rectify_if(Activation activation, const Step& step);
  void rename(const std::string& from, const std::string& to);
  std::string name_for(const Step& step);
  const std::string& name_of(int value, const Step& step);
  /// `numbers` as a tensor with one extent, under a name that no other has.
  std::string constant(const std::string& name, const std::vector<float>& numbers);

  const nn::RecordedGraph& recorded_;
  const HostState& weights_;
  onnx::Graph& graph_;
  std::map<int, std::string> names_;        // of values
  std::map<std::string, int> names_given_;  // and how often each was wanted
};

const GraphWriter::Row GraphWriter::kOperations[] = {
    {"add", &GraphWriter::sum},
    {"avg_pool2d", &GraphWriter::average_pool},
    {"batch_norm", &GraphWriter::normalization},
    {"concat", &GraphWriter::concat},
    {"conv2d", &GraphWriter::convolution},
    {"linear", &GraphWriter::linear},
    {"max_pool2d", &GraphWriter::max_pool},
    {"prelu", &GraphWriter::parametric_relu},
    {"relu", &GraphWriter::relu},
    {"reshape", &GraphWriter::reshape},
    {"scale", &GraphWriter::multiple},
    {"sigmoid", &GraphWriter::sigmoid},
    {"tanh", &GraphWriter::tanh},
};

void GraphWriter::write(const std::string& input, const std::string& output) {
  names_given_[input] = names_given_[output] = 1;
  for (const onnx::ValueInfo& given : graph_.input()) names_given_[given.name()] = 1;
  for (const onnx::Tensor& tensor : graph_.initializer()) names_given_[tensor.name()] = 1;
  for (const onnx::Node& node : graph_.node()) names_given_[node.name()] = 1;
  for (const nn::RecordedGraph::Value& value : recorded_.values()) {
    if (value.parameter != nullptr) names_given_[value.parameter->name] = 1;
  }
  names_[recorded_.input()] = input;
  for (const Step& step : recorded_.steps()) write(step);
  rename(name_of(recorded_.output(), {}), output);
}

void GraphWriter::write(const Step& step) {
  for (const Row& row : kOperations) {
    if (step.operation == row.operation) return (this->*row.write)(step);
  }
  refuse(step, "the operation " + step.operation + " cannot be exported to ONNX");
}

void GraphWriter::rename(const std::string& from, const std::string& to) {
  for (onnx::Node& node : *graph_.mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      if (input == from) input = to;
    }
    if (node.output(0) == from) node.set_output(0, to);
  }
}

void GraphWriter::convolution(const Step& step) {
  const auto& [spec, activation] = std::any_cast<const nn::RecordedConv2d&>(step.spec);
  const Shape& weight = shape_of(step.inputs.at(1));
  onnx::Node& node = add("Conv", step);
  add_attribute(node, "kernel_shape", {weight[2], weight[3]});
  add_attribute(node, "strides", {spec.stride.h, spec.stride.w});
  add_padding(node, spec.padding);
  add_attribute(node, "dilations", {spec.dilation.h, spec.dilation.w});
  add_attribute(node, "group", spec.groups);
  rectify_if(activation, step);
}

void GraphWriter::linear(const Step& step) {
  add_attribute(add("Gemm", step), "transB", 1);  // the weight is [O, I]
  rectify_if(std::any_cast<Activation>(step.spec), step);
}

void GraphWriter::rectify_if(Activation activation, const Step& step) {
  if (activation != Activation::relu) return;
  relu({.layer = step.layer, .operation = "relu", .inputs = {step.output}, .output = step.output});
}

onnx::Node& GraphWriter::pool(const char* operation, const Step& step) {
  const auto& spec = std::any_cast<const Pool2dSpec&>(step.spec);
  if (spec.ceil_mode) {  // run times do not agree on the last window
    refuse(step, "pooling with ceil_mode cannot be exported to ONNX");
  }
  onnx::Node& node = add(operation, step);
  add_attribute(node, "kernel_shape", {spec.kernel.h, spec.kernel.w});
  add_attribute(node, "strides", {spec.stride.h, spec.stride.w});
  add_padding(node, spec.padding);
  return node;
}

void GraphWriter::average_pool(const Step& step) {
  const auto& spec = std::any_cast<const Pool2dSpec&>(step.spec);
  const Shape& image = shape_of(step.inputs.at(0));
  if (spec.kernel.h == image[2] && spec.kernel.w == image[3] && spec.padding == Extent2{0, 0}) {
    add("GlobalAveragePool", step);
    return;
  }
  const bool counts = spec.count_include_pad;
  add_attribute(pool("AveragePool", step), "count_include_pad", counts ? 1 : 0);
}

/// By the running statistics, whatever the layer was trained with.
void GraphWriter::normalization(const Step& step) {
  const auto& [spec, activation, running] = std::any_cast<const nn::RecordedBatchNorm&>(step.spec);
  const auto channels = static_cast<std::size_t>(running->mean.shape.count());
  Step norm = step;
  norm.inputs.resize(1);
  onnx::Node& node = add("BatchNormalization", norm);
  for (const int input : {1, 2}) {  // ONNX has no norm without them
    const int value = step.inputs.at(static_cast<std::size_t>(input));
    const bool weight = input == 1;
    node.add_input(value != nn::RecordedGraph::kAbsent
                       ? name_of(value, step)
                       : constant(node.name() + (weight ? "/weight" : "/bias"),
                                  std::vector<float>(channels, weight ? 1.0F : 0.0F)));
  }
  for (const nn::StateBuffer* buffer : {&running->mean, &running->variance}) {
    node.add_input(
        constant(buffer->name, weights_.buffers.at(static_cast<std::size_t>(buffer->id))));
  }
  add_real_attribute(node, "epsilon", spec.epsilon);
  if (step.inputs.at(3) != nn::RecordedGraph::kAbsent) {
    sum({.layer = step.layer,
         .operation = "add",
         .inputs = {step.output, step.inputs.at(3)},
         .output = step.output});
  }
  rectify_if(activation, step);
}

/// Flatten where it is one; else Reshape, with the first extent left open: N may be any.
void GraphWriter::reshape(const Step& step) {
  const Shape &from = shape_of(step.inputs.at(0)), &to = shape_of(step.output);
  if (to.rank() == 2 && from.rank() > 0 && to[0] == from[0]) {
    add_attribute(add("Flatten", step), "axis", 1);
    return;
  }
  if (to.rank() == 0 || to[0] % shape_of(recorded_.input())[0] != 0) {
    refuse(step, "a reshape that takes the samples out of the first extent cannot be exported");
  }
  std::vector<std::int64_t> extents{-1};
  for (int i = 1; i < to.rank(); ++i) extents.push_back(to[i]);
  onnx::Node& node = add("Reshape", step);
  node.add_input(node.name() + "/shape");
  add_tensor(graph_, node.name() + "/shape", kOnnxInt64, {to.rank()})
      .set_raw_data(extents.data(), extents.size() * sizeof(std::int64_t));
}

/// The slopes are [C, 1, 1] there: ONNX aligns shapes at their last extent.
void GraphWriter::parametric_relu(const Step& step) {
  const bool is_new = !names_.contains(step.inputs.at(1));
  add("PRelu", step);
  if (!is_new || shape_of(step.inputs.at(0)).rank() != 4) return;
  onnx::Tensor& slopes = *graph_.mutable_initializer(graph_.initializer_size() - 1);
  slopes.add_dims(1);
  slopes.add_dims(1);
}

void GraphWriter::multiple(const Step& step) {
  const float alpha = std::any_cast<float>(step.spec);
  onnx::Node& node = add("Mul", step);
  node.add_input(node.name() + "/alpha");
  add_tensor(graph_, node.name() + "/alpha", kOnnxFloat, {}).set_raw_data(&alpha, sizeof alpha);
}

onnx::Node& GraphWriter::add(const std::string& operation, const Step& step) {
  std::vector<std::string> inputs;
  for (const int value : step.inputs) inputs.push_back(name_of(value, step));
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  onnx::Node& node = add_node(graph_, operation, name_for(step), inputs);
  names_[step.output] = node.name();
  return node;
}

std::string GraphWriter::name_for(const Step& step) {
  std::string name = step.layer.empty() ? step.operation : step.layer;
  if (names_given_[name]++ == 0) return name;
  if (!step.layer.empty()) name += "/" + step.operation;
  const int before = names_given_[name]++;
  return before == 0 ? name : name + "_" + std::to_string(before + 1);
}

/// Empty for an input that was left out. A parameter's numbers are written where it is first used.
const std::string& GraphWriter::name_of(int value, const Step& step) {
  static const std::string kAbsent;
  if (value == nn::RecordedGraph::kAbsent) return kAbsent;
  const auto known = names_.find(value);
  if (known != names_.end()) return known->second;
  const nn::Parameter* parameter = recorded_.values().at(static_cast<std::size_t>(value)).parameter;
  if (parameter == nullptr) {
    refuse(step, "it takes a value that no recorded operation made, which ONNX cannot say");
  }
  std::vector<std::int64_t> extents;
  for (int i = 0; i < parameter->shape.rank(); ++i) extents.push_back(parameter->shape[i]);
  const auto& numbers = weights_.values.at(static_cast<std::size_t>(parameter->id));
  add_tensor(graph_, parameter->name, kOnnxFloat, extents)
      .set_raw_data(numbers.data(), numbers.size() * sizeof(float));
  return names_[value] = parameter->name;
}

std::string GraphWriter::constant(const std::string& name, const std::vector<float>& numbers) {
  const int before = names_given_[name]++;
  const std::string own = before == 0 ? name : name + "_" + std::to_string(before + 1);
  add_tensor(graph_, own, kOnnxFloat, {static_cast<std::int64_t>(numbers.size())})
      .set_raw_data(numbers.data(), numbers.size() * sizeof(float));
  return own;
}

}  // namespace

onnx::Tensor& add_tensor(onnx::Graph& graph, const std::string& name, int type,
                         const std::vector<std::int64_t>& extents) {
  onnx::Tensor& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const std::int64_t extent : extents) tensor.add_dims(extent);
  return tensor;
}

onnx::Node& add_node(onnx::Graph& graph, const std::string& operation, const std::string& name,
                     const std::vector<std::string>& inputs) {
  onnx::Node& node = *graph.add_node();
  node.set_op_type(operation);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(name);
  return node;
}

void write_nodes(const nn::RecordedGraph& recorded, const HostState& weights,
                 const std::string& input, const std::string& output, onnx::Graph& graph) {
  GraphWriter(recorded, weights, graph).write(input, output);
}

}  // namespace ringlet::train
