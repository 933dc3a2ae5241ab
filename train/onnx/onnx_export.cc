#include "train/onnx/onnx_export.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "kernels/error.h"
#include "nn/layer_visitor.h"
#include "nn/models/model.h"
#include "train/files/state.h"
#include "train/onnx/onnx.pb.h"
#include "train/version.h"

namespace ringlet::train {

namespace {

constexpr int kFloat = 1;      // of ONNX's element types
constexpr int kIrVersion = 7;  // that came with operator set 13

using Inputs = std::vector<std::string>;

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

/// Rows before and after, columns before and after, in ONNX's order.
void add_padding(onnx::Node& node, const Extent2& padding) {
  add_attribute(node, "pads", {padding.h, padding.w, padding.h, padding.w});
}

void add_tensor(onnx::Graph& graph, const std::string& name,
                const std::vector<std::int64_t>& extents, const std::vector<float>& values) {
  onnx::Tensor& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(kFloat);
  for (const std::int64_t extent : extents) tensor.add_dims(extent);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
}

/// [N, extents...], N free.
void describe_value(onnx::ValueInfo& value, const std::string& name,
                    std::initializer_list<std::int64_t> extents, const std::string& words) {
  value.set_name(name);
  value.set_doc_string(words);
  onnx::TensorType& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(kFloat);
  type.mutable_shape()->add_dim()->set_dim_param("N");
  for (const std::int64_t extent : extents) type.mutable_shape()->add_dim()->set_dim_value(extent);
}

/// Appends a node for each layer; each takes what the one before it gave.
class GraphWriter final : public nn::LayerVisitor {
 public:
  GraphWriter(onnx::Graph& graph, const HostState& weights) : graph_(graph), weights_(weights) {}

  /// (pixel / 255 - mean) / deviation as the loader computes it: pixel * scale + shift.
  void normalize(const ModelInfo& info) {
    std::vector<float> scales, shifts;  // one for all channels, or one a channel
    std::vector<std::int64_t> extents;
    const std::size_t count = std::max(info.mean.values().size(), info.deviation.values().size());
    if (count > 1) extents = {info.channels, 1, 1};
    for (std::size_t c = 0; c < count; ++c) {
      const double deviation = info.deviation[c];
      scales.push_back(static_cast<float>(1 / (255 * deviation)));
      shifts.push_back(static_cast<float>(-info.mean[c] / deviation));
    }
    add_tensor(graph_, "scale", extents, scales);
    add_tensor(graph_, "shift", extents, shifts);
    add("Mul", "scaled", {"scale"});
    add("Add", "normalized", {"shift"});
  }
  /// The last node's output, which becomes the graph's.
  void finish(const std::string& name) {
    graph_.mutable_node(graph_.node_size() - 1)->set_output(0, name);
  }

  void visit(const std::string& name, const nn::Conv2d& layer) override {
    Inputs weights{add(layer.weight_parameter())};
    if (layer.options().bias) weights.push_back(add(layer.bias_parameter()));
    onnx::Node& node = add("Conv", name, weights);
    const Conv2dSpec& spec = layer.spec();
    add_attribute(node, "kernel_shape", {layer.options().kernel.h, layer.options().kernel.w});
    add_attribute(node, "strides", {spec.stride.h, spec.stride.w});
    add_padding(node, spec.padding);
    add_attribute(node, "dilations", {spec.dilation.h, spec.dilation.w});
    add_attribute(node, "group", spec.groups);
  }
  void visit(const std::string& name, const nn::Linear& layer) override {
    const Inputs weights{add(layer.weight_parameter()), add(layer.bias_parameter())};
    add_attribute(add("Gemm", name, weights), "transB", 1);  // [O, I] in the file
  }
  void visit(const std::string& name, const nn::ReLU&) override { add("Relu", name, {}); }
  void visit(const std::string& name, const nn::AvgPool2d& layer) override {
    onnx::Node& node = pool("AveragePool", name, layer.spec());
    add_attribute(node, "count_include_pad", layer.spec().count_include_pad ? 1 : 0);
  }
  void visit(const std::string& name, const nn::MaxPool2d& layer) override {
    pool("MaxPool", name, layer.spec());
  }
  void visit(const std::string& name, const nn::Flatten&) override {
    add_attribute(add("Flatten", name, {}), "axis", 1);
  }
  void visit(const std::string&, const nn::Dropout&) override {}

 private:
  /// The tensor of a parameter; returns its name.
  std::string add(const nn::Parameter& parameter) {
    std::vector<std::int64_t> extents;
    for (int i = 0; i < parameter.shape.rank(); ++i) extents.push_back(parameter.shape[i]);
    add_tensor(graph_, parameter.name, extents,
               weights_.values.at(static_cast<std::size_t>(parameter.id)));
    return parameter.name;
  }

  onnx::Node& add(const char* operation, const std::string& name, const Inputs& further) {
    onnx::Node& node = *graph_.add_node();
    node.set_op_type(operation);
    node.set_name(name);
    node.add_input(std::exchange(last_, name));
    for (const std::string& input : further) node.add_input(input);
    node.add_output(name);
    return node;
  }

  onnx::Node& pool(const char* operation, const std::string& name, const Pool2dSpec& spec) {
    if (spec.ceil_mode) {  // run times do not agree on the last window
      throw ContractError("layer " + name + ": pooling with ceil_mode cannot be exported");
    }
    onnx::Node& node = add(operation, name, {});
    add_attribute(node, "kernel_shape", {spec.kernel.h, spec.kernel.w});
    add_attribute(node, "strides", {spec.stride.h, spec.stride.w});
    add_padding(node, spec.padding);
    return node;
  }

  onnx::Graph& graph_;
  const HostState& weights_;
  std::string last_ = "image";
};

std::string in_words(const ModelInfo& info) {
  return fmt::format(
      "{}, trained on {} by Ringlet {}. Input image: float [N, {}, {}, {}], pixels from 0 to 255 "
      "as in the file{}; they are normalised inside. Output logits: float [N, {}], "
      "before the softmax; the classes' names are in metadata_props, ringlet.classes.",
      info.model, info.data, kVersion, info.channels, info.height, info.width,
      info.background.value_or(0) > 0.5 ? ", dark on light" : ", light on dark",
      info.classes.size());
}

}  // namespace

std::string to_onnx(const std::filesystem::path& file, const ModelInfo& info) {
  const auto layers = nn::make_model(info.model, info.input());
  const HostState weights = load_model(file, nn::register_model(*layers));

  onnx::Model model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("ringlet");
  model.set_producer_version(kVersion);
  model.set_doc_string(in_words(info));
  model.add_opset_import()->set_version(kOnnxOpset);
  model.mutable_opset_import(0)->set_domain("");
  for (const auto& [key, text] : to_metadata(info)) {
    if (key == "format") continue;
    onnx::Property& property = *model.add_metadata_props();
    property.set_key(key);
    property.set_value(text);
  }
  onnx::Graph& graph = *model.mutable_graph();
  graph.set_name(info.model);
  describe_value(*graph.add_input(), "image", {info.channels, info.height, info.width},
                 "pixels from 0 to 255");
  GraphWriter writer(graph, weights);
  writer.normalize(info);
  nn::visit_layers(*layers, writer);
  writer.finish("logits");
  describe_value(*graph.add_output(), "logits", {static_cast<std::int64_t>(info.classes.size())},
                 "before the softmax");
  return model.SerializeAsString();
}

}  // namespace ringlet::train
