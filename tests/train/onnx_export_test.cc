// The exported graph itself, where no ONNX runtime is at hand: how it normalises, its nodes and its
// weights.
#include "train/onnx/onnx_export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "data/memory_dataset.h"
#include "nn/layers/concat.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/prelu.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/linear.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/files/safetensors.h"
#include "train/onnx/onnx.pb.h"
#include "train/onnx/onnx_graph.h"

namespace ringlet::train {
namespace {

using Lines = std::vector<std::string>;

/// "conv1 = Conv(normalized, conv1.weight) group 1 pads 0 0 0 0": each node's output, inputs and
/// attributes, and its name where that is not its output's.
Lines in_words(const onnx::Graph& graph) {
  Lines lines;
  for (const onnx::Node& node : graph.node()) {
    std::string text = node.output(0) + " = " + node.op_type() + "(";
    for (const std::string& input : node.input()) text += (text.back() == '(' ? "" : ", ") + input;
    text += ")";
    for (const onnx::Attribute& attribute : node.attribute()) {
      text += " " + attribute.name();
      if (attribute.type() == onnx::Attribute::INT) text += " " + std::to_string(attribute.i());
      for (const std::int64_t value : attribute.ints()) text += " " + std::to_string(value);
    }
    lines.push_back(node.name() == node.output(0) ? text : text + " named " + node.name());
  }
  return lines;
}

class OnnxExport : public ::testing::Test {
 protected:
  void SetUp() override {
    TrainOptions options = plain_options(1);
    options.recipe.normalize = true;
    options.files.out = folder_.path();
    run(options, formula_splits(64));
    ASSERT_TRUE(model_.ParseFromString(to_onnx(file(), info())));
    for (const onnx::Tensor& tensor : model_.graph().initializer()) {
      std::vector<float>& values = tensors_[tensor.name()];
      values.resize(tensor.raw_data().size() / sizeof(float));
      std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
    }
  }
  std::filesystem::path file() const { return folder_ / "model.safetensors"; }
  ModelInfo info() const { return read_model_info(file()).value(); }

  const testing::TemporaryDirectory folder_;
  onnx::Model model_;
  std::map<std::string, std::vector<float>> tensors_;
};

TEST_F(OnnxExport, NormalisesPixelsAsTheModelWasTrained) {
  const onnx::Node& scaled = model_.graph().node(0);
  const onnx::Node& normalized = model_.graph().node(1);
  EXPECT_EQ(scaled.op_type() + " " + scaled.input(0) + " " + scaled.input(1), "Mul image scale");
  EXPECT_EQ(normalized.op_type() + " " + normalized.input(1), "Add shift");
  EXPECT_EQ(normalized.input(0), scaled.output(0));
  EXPECT_EQ(model_.graph().node(2).input(0), normalized.output(0));
  const ModelInfo what = info();
  ASSERT_GT(what.mean[0], 0.1) << "or the shift would be nothing";
  for (const double pixel : {0, 1, 100, 255}) {
    EXPECT_NEAR(pixel * tensors_["scale"].at(0) + tensors_["shift"].at(0),
                (pixel / 255 - what.mean[0]) / what.deviation[0], 1e-5)
        << pixel;
  }
}

/// Sixty-four images of three channels, each brighter than the one before it.
std::shared_ptr<const data::Dataset> colours() {
  std::vector<std::uint8_t> images(64 * 3 * 784);
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i] = static_cast<std::uint8_t>(70 * (i / 784 % 3) + i * i % (50 + 10 * (i / 784 % 3)));
  }
  return std::make_shared<const data::MemoryDataset>(
      data::DatasetInfo{"colours", 3, 28, 28, {"a", "b"}}, std::move(images),
      std::vector<std::int32_t>(64, 1));
}

TEST(OnnxExportOfColours, NormalisesEachChannelByItsOwnNumbers) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = plain_options(1);
  options.recipe.normalize = true;
  options.files.out = folder.path();
  run(options, {colours(), colours()});
  const std::filesystem::path file = folder / "model.safetensors";
  const ModelInfo info = read_model_info(file).value();
  EXPECT_EQ(info.mean, colours()->mean());
  EXPECT_EQ(info.deviation, colours()->deviation());
  ASSERT_LT(info.mean[0], info.mean[2]);

  onnx::Model model;
  ASSERT_TRUE(model.ParseFromString(to_onnx(file, info)));
  for (const onnx::Tensor& tensor : model.graph().initializer()) {
    if (tensor.name() != "scale" && tensor.name() != "shift") continue;
    ASSERT_EQ(tensor.dims_size(), 3);
    EXPECT_EQ(tensor.dims(0), 3);
    float values[3];
    ASSERT_EQ(tensor.raw_data().size(), sizeof values);
    std::memcpy(values, tensor.raw_data().data(), sizeof values);
    for (std::size_t c = 0; c < 3; ++c) {
      const float wanted = tensor.name() == "scale" ? 1 / (255 * info.deviation[c])
                                                    : -info.mean[c] / info.deviation[c];
      EXPECT_NEAR(values[c], wanted, 1e-6 * std::abs(wanted)) << tensor.name() << c;
    }
  }
}

// Programs know these names: they must not change.
TEST_F(OnnxExport, HasANodeForEachLayerUnderItsName) {
  const std::string conv = " strides 1 1 pads 0 0 0 0 dilations 1 1 group 1";
  const std::string pool = " kernel_shape 2 2 strides 2 2 pads 0 0 0 0 count_include_pad 1";
  EXPECT_EQ(in_words(model_.graph()),
            (Lines{"scaled = Mul(image, scale)", "normalized = Add(scaled, shift)",
                   "conv1 = Conv(normalized, conv1.weight, conv1.bias) kernel_shape 3 3" + conv,
                   "relu1 = Relu(conv1)", "pool1 = AveragePool(relu1)" + pool,
                   "conv2 = Conv(pool1, conv2.weight, conv2.bias) kernel_shape 5 5" + conv,
                   "relu2 = Relu(conv2)", "pool2 = AveragePool(relu2)" + pool,
                   "flatten = Flatten(pool2) axis 1",
                   "fc1 = Gemm(flatten, fc1.weight, fc1.bias) transB 1", "relu3 = Relu(fc1)",
                   "logits = Gemm(relu3, fc2.weight, fc2.bias) transB 1 named fc2"}));
  Lines tensors;
  for (const onnx::Tensor& tensor : model_.graph().initializer()) tensors.push_back(tensor.name());
  EXPECT_EQ(tensors, (Lines{"scale", "shift", "conv1.weight", "conv1.bias", "conv2.weight",
                            "conv2.bias", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}));
}

TEST_F(OnnxExport, HasTheFilesWeightsBitForBit) {
  const SafetensorsFile weights(file());
  for (const auto& entry : weights.entries()) {
    const auto expected = weights.f32(entry.spec.name);
    const std::vector<float>& actual = tensors_[entry.spec.name];
    EXPECT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin(), expected.end()))
        << entry.spec.name;
  }
  EXPECT_EQ(tensors_.size(), weights.entries().size() + 2);
}

/// A layer made of a function.
class Own : public nn::Layer {
 public:
  using Function = std::function<nn::Variable(nn::Tape& tape, const nn::Variable& x)>;
  explicit Own(Function function) : function_(std::move(function)) {}
  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    return function_(tape, x);
  }

 private:
  Function function_;
};

/// The nodes for `model` with weights of zeros on images [N, 1, 4, 4], from "in" to "out".
onnx::Graph graph_of(nn::Layer& model) {
  const nn::Registry registry = nn::register_model(model);
  HostState weights;
  for (const nn::Parameter* parameter : registry.parameters) {
    weights.values.emplace_back(static_cast<std::size_t>(parameter->shape.count()));
  }
  onnx::Graph graph;
  write_nodes(nn::record_graph(model, registry, {17, 1, 4, 4}), weights, "in", "out", graph);
  return graph;
}

TEST(OnnxGraph, HasWhatALayerOfSeveralOperationsDoes) {
  class Several : public nn::Layer {
   public:
    nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
      const nn::Variable w = tape.parameter(weight_);
      const nn::Variable row = x.reshaped({x.shape()[0], 16});
      const nn::Variable y = nn::linear(row, w, {}, Activation::relu);
      return nn::add(nn::scale(nn::linear(row, w, {}), 0.5F), y);
    }
    void register_in(nn::Registry& registry, const std::string& prefix) override {
      registry.add(weight_, prefix + "weight");
    }

   private:
    nn::Parameter weight_{{3, 16}, nn::Initializer::zeros()};
  };
  nn::Sequential model;
  model.add<Several>("own");
  const onnx::Graph graph = graph_of(model);
  EXPECT_EQ(in_words(graph),
            (Lines{"own = Flatten(in) axis 1", "own/linear = Gemm(own, own.weight) transB 1",
                   "own/relu = Relu(own/linear)", "own/linear_2 = Gemm(own, own.weight) transB 1",
                   "own/scale = Mul(own/linear_2, own/scale/alpha)",
                   "out = Add(own/scale, own/relu) named own/add"}));
  EXPECT_EQ(graph.initializer_size(), 2);
}

TEST(OnnxGraph, HasReshapesThatKeepTheSamplesInFront) {
  nn::Sequential model;
  model.add<Own>("fold", [](nn::Tape&, const nn::Variable& x) {
    return x.reshaped({x.shape()[0] * 4, 4});
  });
  const onnx::Graph graph = graph_of(model);
  EXPECT_EQ(in_words(graph), (Lines{"out = Reshape(in, fold/shape) named fold"}));
  std::int64_t extents[2];
  ASSERT_EQ(graph.initializer(0).raw_data().size(), sizeof extents);
  std::memcpy(extents, graph.initializer(0).raw_data().data(), sizeof extents);
  EXPECT_EQ(graph.initializer(0).data_type(), kOnnxInt64);
  EXPECT_EQ(extents[0], -1);
  EXPECT_EQ(extents[1], 4);
}

TEST(OnnxGraph, HasBranchesSideBySide) {
  nn::Sequential model;
  auto& both = model.add<nn::Concat>("both");
  both.add("left").add<nn::Sigmoid>("sigmoid");
  both.add("right").add<nn::Tanh>("tanh");
  EXPECT_EQ(in_words(graph_of(model)),
            (Lines{"both.left.sigmoid = Sigmoid(in)", "both.right.tanh = Tanh(in)",
                   "out = Concat(both.left.sigmoid, both.right.tanh) axis 1 named both"}));
}

// ONNX aligns a slope with the last extents of what it is for.
TEST(OnnxGraph, HasSlopesOfChannels) {
  nn::Sequential model;
  model.add<nn::Conv2d>("conv", nn::Conv2dOptions{.in_channels = 1, .out_channels = 3});
  model.add<nn::PReLU>("images", 3);
  model.add<nn::Flatten>("flatten");
  model.add<nn::PReLU>("rows");
  const onnx::Graph graph = graph_of(model);
  const Lines lines = in_words(graph);
  EXPECT_EQ(lines.at(1), "images = PRelu(conv, images.weight)");
  EXPECT_EQ(lines.at(3), "out = PRelu(flatten, rows.weight) named rows");
  for (const onnx::Tensor& tensor : graph.initializer()) {
    if (tensor.name() == "rows.weight") {
      EXPECT_EQ(tensor.dims_size(), 1);
    }
    if (tensor.name() != "images.weight") continue;
    ASSERT_EQ(tensor.dims_size(), 3);
    EXPECT_EQ(tensor.dims(0), 3);
    EXPECT_EQ(tensor.dims(1), 1);
    EXPECT_EQ(tensor.dims(2), 1);
  }
}

TEST(OnnxGraph, GivesNoNameTwice) {
  nn::Sequential model;
  for (const char* name : {"in", "relu", "relu", "out"}) model.add<nn::ReLU>(name);
  EXPECT_EQ(in_words(graph_of(model)),
            (Lines{"in/relu = Relu(in)", "relu = Relu(in/relu)", "relu/relu = Relu(relu)",
                   "out = Relu(relu/relu) named out/relu"}));
}

TEST(OnnxGraph, NamesWhatOnnxHasNot) {
  const auto message = [](const std::function<void(nn::Sequential&)>& add) {
    nn::Sequential model;
    add(model);
    return testing::message_of<ContractError>([&] { graph_of(model); });
  };
  const auto own = [&](const Own::Function& function) {
    return message([&](nn::Sequential& model) { model.add<Own>("odd", function); });
  };
  EXPECT_TRUE(testing::says(own([](nn::Tape& tape, const nn::Variable& x) {
                              const nn::Variable y = tape.make(x.shape(), x.layout());
                              tape.record("swirl", {x}, y, [](nn::Backward&) {});
                              return y;
                            }),
                            {"layer odd", "swirl", "ONNX"}));
  EXPECT_TRUE(testing::says(own([](nn::Tape& tape, const nn::Variable& x) {
                              return nn::add(x, tape.make(x.shape(), x.layout()));
                            }),
                            {"layer odd", "no recorded operation made"}));
  EXPECT_TRUE(testing::says(own([](nn::Tape&, const nn::Variable& x) {
                              return x.reshaped({16, x.shape()[0]});
                            }),
                            {"layer odd", "reshape", "first extent"}));
  EXPECT_TRUE(testing::says(message([](nn::Sequential& model) {
                              model.add<nn::MaxPool2d>("pool", Pool2dSpec{.ceil_mode = true});
                            }),
                            {"layer pool", "ceil_mode"}));
}

}  // namespace
}  // namespace ringlet::train
