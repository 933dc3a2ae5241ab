// What a tracer on the compute stream sees of a step.
#include "base/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "nn/ops/elementwise.h"
#include "tests/nn/net.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

std::string name_of(const Span& span) { return span.name.data(); }

class TraceTest : public ::testing::Test {
 protected:
  /// One step of LeNet without fusion; the spans of it.
  void SetUp() override {
    const Net net = lenet_net(14);
    Rig rig(make_sequential(net), {net.sample.with_batch(4), Layout::nchw}, {.fuse = false});
    const Tensor x = test::random_tensor(*rig.device, net.sample.with_batch(4), 3);
    const Tensor labels = test::upload<std::int32_t>(*rig.device, {4}, {0, 1, 2, 3});
    rig.device->compute().set_tracer(&tracer_);
    rig.step(x, labels);
    rig.device->compute().set_tracer(nullptr);
    const std::size_t traced = tracer_.spans().size();
    rig.step(x, labels);
    EXPECT_EQ(tracer_.spans().size(), traced);
  }

  Log names(std::string_view category) const {
    Log names;
    for (const Span& span : tracer_.spans()) {
      if (span.category == category) names.push_back(name_of(span));
    }
    return names;
  }
  /// The kernels that ran within the layer span `name`.
  Log kernels_within(const std::string& name) const {
    const auto layer = std::find_if(tracer_.spans().begin(), tracer_.spans().end(),
                                    [&](const Span& span) { return name_of(span) == name; });
    Log kernels;
    if (layer == tracer_.spans().end()) return {"no span " + name};
    for (const Span& span : tracer_.spans()) {
      const bool inside = span.begin_ns >= layer->begin_ns && span.end_ns <= layer->end_ns;
      if (inside && span.category == std::string_view("kernel")) kernels.push_back(name_of(span));
    }
    return kernels;
  }

  Tracer tracer_;
};

TEST_F(TraceTest, HasASpanForEachLayerForwardAndBackward) {
  EXPECT_EQ(
      names("layer"),
      (Log{"forward conv1", "forward relu1", "forward pool1", "forward conv2", "forward relu2",
           "forward pool2", "forward flatten", "forward fc1", "forward relu3", "forward fc2",
           "backward fc2", "backward relu3", "backward fc1", "backward pool2", "backward relu2",
           "backward conv2", "backward pool1", "backward relu1", "backward conv1"}));
}

TEST_F(TraceTest, KernelsLieWithinTheirLayers) {
  EXPECT_EQ(kernels_within("forward conv1"), Log{"conv2d_forward"});
  EXPECT_EQ(kernels_within("forward flatten"), Log{});
  EXPECT_EQ(kernels_within("backward fc2"),
            (Log{"linear_backward_weight_bias", "linear_backward_data"}));
  EXPECT_EQ(kernels_within("backward conv2"),
            (Log{"bias_backward", "conv2d_backward_filter", "conv2d_backward_data"}));
  EXPECT_EQ(kernels_within("backward conv1"),  // nobody wants the gradient of the images
            (Log{"bias_backward", "conv2d_backward_filter"}));
}

TEST_F(TraceTest, LayersFollowOneAnother) {
  std::int64_t end = 0;
  for (const Span& span : tracer_.spans()) {
    EXPECT_LE(span.begin_ns, span.end_ns) << name_of(span);
    if (span.category != std::string_view("layer")) continue;
    EXPECT_GE(span.begin_ns, end) << name_of(span);
    end = span.end_ns;
  }
}

TEST_F(TraceTest, TheLossBelongsToNoLayer) {
  const Log kernels = names("kernel");
  for (const char* loss : {"softmax_cross_entropy_forward", "softmax_cross_entropy_backward"}) {
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), loss), 1) << loss;
    for (const std::string& layer : names("layer")) {
      const Log inside = kernels_within(layer);
      EXPECT_EQ(std::count(inside.begin(), inside.end(), loss), 0) << loss << " in " << layer;
    }
  }
}

TEST(Trace, AnOperationOutsideOfLayersEndsTheLayerBehindIt) {
  const std::string first = "first", second = "second";
  auto graph = std::make_unique<Graph>();
  Parameter& parameter = graph->add("parameter", {1}, 1);
  graph->set([&](Tape& tape, const Variable&) {
    Variable y = tape.parameter(parameter);
    {
      const Tape::Scope scope(tape, first);
      y = relu(y);
    }
    y = scale(y, 2);
    const Tape::Scope scope(tape, second);
    return relu(y);
  });
  Rig rig(std::move(graph), {{1}, Layout::nchw}, {.loss = output_is_loss});
  const Tensor x = test::upload<float>(*rig.device, {1}, {1});
  const Tensor labels = test::upload<std::int32_t>(*rig.device, {1}, {0});
  Tracer tracer;
  rig.device->compute().set_tracer(&tracer);
  rig.step(x, labels);
  rig.device->compute().set_tracer(nullptr);
  Log names;
  for (const Span& span : tracer.spans()) names.push_back(name_of(span));
  EXPECT_EQ(names, (Log{"relu_forward", "forward first", "scale", "relu_forward", "forward second",
                        "copy", "relu_backward", "backward second", "scale", "relu_backward",
                        "backward first", "copy_to_host"}));  // the loss, read
}

}  // namespace
}  // namespace ringlet::nn
