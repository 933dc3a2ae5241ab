#include "train/onnx/onnx_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "nn/recorded_graph.h"
#include "train/onnx/onnx.pb.h"
#include "train/onnx/onnx_graph.h"
#include "train/recipe/models.h"
#include "train/recipe/version.h"

namespace ringlet::train {

namespace {

constexpr int kIrVersion = 7;             // that came with operator set 13
constexpr std::int64_t kDrySamples = 17;  // of the dry run; N is free in the file

/// [N, extents...], N free.
void describe_value(onnx::ValueInfo& value, const std::string& name,
                    std::initializer_list<std::int64_t> extents, const std::string& words) {
  value.set_name(name);
  value.set_doc_string(words);
  onnx::TensorType& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(kOnnxFloat);
  type.mutable_shape()->add_dim()->set_dim_param("N");
  for (const std::int64_t extent : extents) type.mutable_shape()->add_dim()->set_dim_value(extent);
}

void add_floats(onnx::Graph& graph, const std::string& name,
                const std::vector<std::int64_t>& extents, const std::vector<float>& values) {
  add_tensor(graph, name, kOnnxFloat, extents)
      .set_raw_data(values.data(), values.size() * sizeof(float));
}

/// (pixel / 255 - mean) / deviation as the loader computes it: pixel * scale + shift.
void normalize(onnx::Graph& graph, const ModelInfo& info) {
  const std::size_t count = std::max(info.mean.values().size(), info.deviation.values().size());
  std::vector<std::int64_t> extents;  // one number for all channels, or one a channel
  if (count > 1) extents = {info.channels, 1, 1};
  std::vector<float> scales, shifts;
  for (std::size_t c = 0; c < count; ++c) {
    const double deviation = info.deviation[c];
    scales.push_back(static_cast<float>(1 / (255 * deviation)));
    shifts.push_back(static_cast<float>(-info.mean[c] / deviation));
  }
  add_floats(graph, "scale", extents, scales);
  add_floats(graph, "shift", extents, shifts);
  add_node(graph, "Mul", "scaled", {"image", "scale"});
  add_node(graph, "Add", "normalized", {"scaled", "shift"});
}

const char* output_of(const ModelInfo& info) { return info.embedding > 0 ? "embedding" : "logits"; }

std::string in_words(const ModelInfo& info) {
  return fmt::format(
      "{}, trained on {} by Ringlet {}. Input image: float [N, {}, {}, {}], pixels from 0 to 255 "
      "as in the file{}; they are normalised inside. Output {}: float [N, {}]{}.",
      info.model, info.data, kVersion, info.channels, info.height, info.width,
      info.background.value_or(0) > 0.5 ? ", dark on light" : ", light on dark", output_of(info),
      info.input().outputs,
      info.embedding > 0 ? ", of any length"
                         : ", before the softmax; the classes' names are in metadata_props, "
                           "ringlet.classes");
}

}  // namespace

std::string to_onnx(const std::filesystem::path& file, const ModelInfo& info, const MakeModel& make,
                    NonFinite nonfinite) {
  const auto layers = make ? nn::require_model(make(info.input()), "make_model")
                           : make_model(info.model, info.input());
  const nn::Registry registry = nn::register_model(*layers);
  const HostState weights = load_model(file, registry, Head::as_in_file, nonfinite);
  const nn::RecordedGraph recorded =
      nn::record_graph(*layers, registry, {kDrySamples, info.channels, info.height, info.width});

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
  normalize(graph, info);
  write_nodes(recorded, weights, "normalized", output_of(info), graph);
  describe_value(*graph.add_output(), output_of(info), {info.input().outputs},
                 info.embedding > 0 ? "of any length" : "before the softmax");
  return model.SerializeAsString();
}

}  // namespace ringlet::train
