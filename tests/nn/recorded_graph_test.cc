// What a dry run writes down of a forward pass, and what it leaves alone.
#include "nn/recorded_graph.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/trace.h"
#include "kernels/pool2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/stateless.h"
#include "nn/models/lenet.h"
#include "nn/ops/conv2d.h"
#include "nn/ops/elementwise.h"
#include "tests/nn/net.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

/// "conv1 conv2d(x, conv1.weight, conv1.bias) = 3"; x is the model's input, other values go by
/// their index.
std::string in_words(const RecordedGraph& graph, const RecordedGraph::Step& step) {
  std::string text = step.layer + " " + step.operation + "(";
  for (const int input : step.inputs) {
    text += text.back() == '(' ? "" : ", ";
    if (input == RecordedGraph::kAbsent) {
      text += "-";
      continue;
    }
    const Parameter* parameter = graph.values().at(static_cast<std::size_t>(input)).parameter;
    text += input == graph.input() ? "x"
            : parameter != nullptr ? parameter->name
                                   : std::to_string(input);
  }
  return text + ") = " + std::to_string(step.output);
}

Log in_words(const RecordedGraph& graph) {
  Log words;
  for (const RecordedGraph::Step& step : graph.steps()) words.push_back(in_words(graph, step));
  return words;
}

RecordedGraph graph_of(Layer& model, const Shape& input) {
  return record_graph(model, register_model(model), input);
}

TEST(RecordedGraph, HasEachOperationOfLeNetByItself) {
  const auto lenet = make_lenet({}, LeNetStart::practitioner);
  const RecordedGraph graph = graph_of(*lenet, {2, 1, 28, 28});
  EXPECT_EQ(in_words(graph),
            (Log{"conv1 conv2d(x, conv1.weight, conv1.bias) = 3", "relu1 relu(3) = 4",
                 "pool1 avg_pool2d(4) = 5", "conv2 conv2d(5, conv2.weight, conv2.bias) = 8",
                 "relu2 relu(8) = 9", "pool2 avg_pool2d(9) = 10", "flatten reshape(10) = 11",
                 "fc1 linear(11, fc1.weight, fc1.bias) = 14", "relu3 relu(14) = 15",
                 "fc2 linear(15, fc2.weight, fc2.bias) = 18"}));
  EXPECT_EQ(graph.output(), 18);
  EXPECT_EQ(graph.values().at(11).shape, (Shape{2, 800}));
}

TEST(RecordedGraph, KeepsWhatAnOperationWasAskedFor) {
  Sequential model;
  const Conv2dSpec conv{.stride = {2, 1}, .padding = {1, 0}};
  const Pool2dSpec pool{.kernel = {1, 3}, .stride = {1, 1}};
  model.add<Conv2d>("conv", Conv2dOptions{.spec = conv, .bias = false});
  model.add<MaxPool2d>("pool", pool);
  const RecordedGraph graph = graph_of(model, {2, 1, 9, 9});
  EXPECT_EQ(in_words(graph), (Log{"conv conv2d(x, conv.weight, -) = 2", "pool max_pool2d(2) = 3"}));
  EXPECT_EQ(std::any_cast<RecordedConv2d>(graph.steps().at(0).spec).spec, conv);
  EXPECT_EQ(std::any_cast<Pool2dSpec>(graph.steps().at(1).spec), pool);
}

TEST(RecordedGraph, SaysWhereAModelBranchesAndInWhichLayer) {
  const Net net = test_nets().at(3);
  ASSERT_EQ(net.name, "residual");
  const auto model = make_sequential(net);
  Log words = in_words(graph_of(*model, net.sample));
  words.resize(7);
  const std::string shortcut = "block1.shortcut.conv";
  EXPECT_EQ(
      words,
      (Log{"block1.body.conv1 conv2d(x, block1.body.conv1.weight, block1.body.conv1.bias) = 3",
           "block1.body.relu relu(3) = 4", "block1.body.pool avg_pool2d(4) = 5",
           "block1.body.conv2 conv2d(5, block1.body.conv2.weight, -) = 7",
           shortcut + " conv2d(x, " + shortcut + ".weight, " + shortcut + ".bias) = 10",
           "block1 add(7, 10) = 11", "relu1 relu(11) = 12"}));
}

TEST(RecordedGraph, HasAReshapeOnceAndNoDropout) {
  Graph model;
  model.set([](Tape&, const Variable& x) {
    const Variable flat = x.reshaped({4, 6});
    return add(flat, x.reshaped({4, 6}).reshaped({4, 6})).reshaped({4, 2, 3});
  });
  EXPECT_EQ(in_words(graph_of(model, {4, 2, 3})),
            (Log{" reshape(x) = 1", " add(1, 1) = 2", " reshape(2) = 3"}));
  Sequential dropping;
  dropping.add<Dropout>("drop", 0.5F);
  const RecordedGraph nothing = graph_of(dropping, {4, 6});
  EXPECT_TRUE(nothing.steps().empty());
  EXPECT_EQ(nothing.output(), nothing.input());
}

TEST(RecordedGraph, NamesTheLayerThatDoesNotFit) {
  const auto lenet = make_lenet({}, LeNetStart::practitioner);
  try {
    graph_of(*lenet, {2, 1, 32, 32});
    FAIL() << "nothing was thrown";
  } catch (const ContractError& error) {
    EXPECT_NE(std::string(error.what()).find("fc1"), std::string::npos) << error.what();
  }
  for (const Parameter* p : register_model(*lenet).parameters) EXPECT_TRUE(p->value.absent());
}

// A pattern must not take a layer that only looks like one of its own.
TEST(Fusion, LeavesADerivedLayerAlone) {
  class Doubled : public ReLU {
   public:
    Variable forward(Tape& tape, const Variable& x) override {
      return scale(ReLU::forward(tape, x), 2);
    }
  };
  auto model = std::make_unique<Sequential>();
  model->add<Linear>("fc", 1, 1);
  model->add<Doubled>("doubled");
  Rig rig(std::move(model), {{1, 1}, Layout::nchw}, {.loss = output_is_loss});
  test::write<float>(rig.parameter("fc.weight").value, {3});
  test::write<float>(rig.parameter("fc.bias").value, {1});
  EXPECT_EQ(rig.step(test::upload<float>(*rig.device, {1, 1}, {1})), 8);
}

TEST(Fusion, WritesFewerValuesAndCanBeSwitchedOff) {
  const auto count = [](bool fuse, Layout layout) {
    const Net net = lenet_net(14);
    Rig rig(make_sequential(net), {net.sample.with_batch(16), layout}, {.fuse = fuse});
    Log operations;
    rig.tape.set_inspector([&](const char* layer, const char* operation, const View&) {
      operations.push_back(std::string(layer) + " " + operation);
    });
    const Tensor x = test::random_tensor(*rig.device, net.sample.with_batch(16), 3, layout);
    rig.step(x, test::upload(*rig.device, {16}, test::random_labels(16, 4, 10)));
    return operations;
  };
  EXPECT_EQ(count(true, Layout::nchw),
            (Log{"conv1 conv2d_relu_avg_pool2d", "conv2 conv2d_relu_avg_pool2d", "fc1 linear",
                 "fc2 linear", " softmax_cross_entropy"}));
  EXPECT_EQ(count(true, Layout::lanes),
            (Log{"conv1 conv2d_relu_avg_pool2d", "conv2 conv2d_relu_avg_pool2d", "fc1 linear",
                 "fc2 linear", " softmax_cross_entropy"}));
  EXPECT_EQ(count(false, Layout::lanes).size(), 10u);
}

TEST(Fusion, KeepsTheBitsInNchw) {
  const auto gradients = [](bool fuse) {
    const Net net = lenet_net(15);  // odd: pooling leaves a row and a column
    Rig rig(make_sequential(net), {net.sample.with_batch(5), Layout::nchw}, {.fuse = fuse});
    const Tensor x = test::random_tensor(*rig.device, net.sample.with_batch(5), 3);
    rig.step(x, test::upload(*rig.device, {5}, test::random_labels(5, 4, 10)));
    return test::read(rig.parameters.gradients());
  };
  EXPECT_EQ(gradients(true), gradients(false));
}

/// The kernels of a step of LeNet in nchw, as a GPU runs them too: each one launch, but for what a
/// library makes of a product. Beside them a GPU gathers the batch, adds the loss to the step's
/// statistics, which are copied there before, and updates: 21 kernels and a copy.
TEST(Fusion, LeavesLenetEighteenKernels) {
  const Net net = lenet_net(28);
  Rig rig(make_sequential(net), {net.sample.with_batch(4), Layout::nchw});
  const Tensor x = test::random_tensor(*rig.device, net.sample.with_batch(4), 3);
  const Tensor labels = test::upload<std::int32_t>(*rig.device, {4}, {0, 1, 2, 3});
  Tracer tracer;
  rig.device->compute().set_tracer(&tracer);
  rig.step(x, labels);
  rig.device->compute().set_tracer(nullptr);
  Log kernels;
  for (const Span& span : tracer.spans()) {
    if (span.category == std::string_view("kernel")) kernels.push_back(span.name.data());
  }
  EXPECT_EQ(kernels,
            (Log{"conv2d_forward", "avg_pool2d_forward", "conv2d_forward", "avg_pool2d_forward",
                 "linear_forward", "linear_forward", "softmax_cross_entropy_forward",
                 "softmax_cross_entropy_backward",  // from here on backward
                 "linear_backward_weight_bias", "linear_backward_data", "bias_relu_backward",
                 "linear_backward_weight", "linear_backward_data", "bias_relu_avg_pool2d_backward",
                 "conv2d_backward_filter", "conv2d_backward_data", "bias_relu_avg_pool2d_backward",
                 "conv2d_backward_filter", "copy_to_host"}));  // the loss, read by the test
}

}  // namespace
}  // namespace ringlet::nn
