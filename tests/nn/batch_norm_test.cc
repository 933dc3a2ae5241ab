// Batch norm as a layer: whose statistics normalise, what becomes of the running ones, and what the
// models that are built of it count.
#include "tests/reference/batch_norm.h"

#include <gtest/gtest.h>

#include "nn/layers/batch_norm2d.h"
#include "nn/layers/sequential.h"
#include "nn/models/iresnet.h"
#include "nn/models/resnet.h"
#include "nn/recorded_graph.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

const Shape kShape{17, 3, 4, 5};

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

std::unique_ptr<Sequential> norm_alone(const BatchNorm2dOptions& options = {}) {
  auto net = std::make_unique<Sequential>();
  net->add<BatchNorm2d>("bn", 3, options);
  return net;
}

/// A norm whose output's sum with fixed numbers is the loss.
class BatchNormLayer : public ::testing::TestWithParam<Layout> {
 protected:
  explicit BatchNormLayer(const BatchNorm2dOptions& options = {})
      : x_(test::random_floats(kShape.count(), 1, 2, 5)),
        dy_(test::random_floats(kShape.count(), 2)),
        image_(test::upload(*device_, kShape, x_, GetParam(), 1234.5F)),
        coefficients_(test::upload(*device_, kShape, dy_, GetParam())) {
    use(options);
  }
  void use(const BatchNorm2dOptions& options) {
    rig_ = std::make_unique<Rig>(norm_alone(options), InputSpec{kShape, GetParam()},
                                 RigOptions{.loss = [this](const Variable& y, const Variable&) {
                                   return weighted_sum(y, coefficients_);
                                 }});
  }
  test::reference::Moments<double> moments() const {
    return test::reference::moments_of(kShape, doubles(x_));
  }
  std::vector<float> running(std::size_t i) const {
    return test::read(rig_->registry.buffers[i]->value);
  }
  std::int32_t batches() const {
    return *rig_->registry.counters.front()->value.as<std::int32_t>();
  }
  /// What the layer gives outside training.
  std::vector<float> evaluated() {
    rig_->tape.begin({.training = false});
    return test::read(rig_->model->forward(rig_->tape, rig_->tape.constant(image_)).value());
  }

  std::unique_ptr<Device> device_ = open_device({}, {});
  std::vector<float> x_, dy_;
  Tensor image_, coefficients_;
  std::unique_ptr<Rig> rig_;
};
INSTANTIATE_TEST_SUITE_P(Layouts, BatchNormLayer, ::testing::Values(Layout::nchw, Layout::lanes),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(BatchNormLayer, KeepsPyTorchsRunningStatistics) {
  rig_->step(image_);
  EXPECT_EQ(running(0), std::vector<float>(3, 0)) << "before the step is committed";
  rig_->parameters.commit_running_statistics(rig_->tape.stream());
  const auto of_x = moments();
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(running(0)[c], 0.1 * of_x.mean[c], 1e-6);
    EXPECT_NEAR(running(1)[c], 0.9 + 0.1 * of_x.squares[c] / (of_x.count - 1), 1e-6);
  }
  EXPECT_EQ(batches(), 1);
}

TEST_P(BatchNormLayer, NormalisesByTheRunningStatisticsOutsideTraining) {
  rig_->step(image_);
  rig_->parameters.commit_running_statistics(rig_->tape.stream());
  const test::reference::Moments<double> kept{doubles(running(0)), doubles(running(1)), 1};
  EXPECT_LE(
      test::relative_l2(evaluated(), test::reference::normalized(kShape, kept, 1e-5, doubles(x_))),
      1e-6);
  EXPECT_EQ(batches(), 1) << "evaluation is no batch";
}

TEST_P(BatchNormLayer, LeavesFrozenStatisticsAlone) {
  use({.spec = {.frozen = true}});
  rig_->step(image_);
  rig_->parameters.commit_running_statistics(rig_->tape.stream());
  EXPECT_EQ(running(0), std::vector<float>(3, 0));
  EXPECT_EQ(running(1), std::vector<float>(3, 1));
  EXPECT_EQ(batches(), 0);
  const test::reference::Moments<double> start{{0, 0, 0}, {1, 1, 1}, 1};
  const auto expected = test::reference::batch_norm_backward<double>(
      kShape, start, 1e-5, {1, 1, 1}, doubles(x_), doubles(dy_), true);
  EXPECT_LE(test::relative_l2(rig_->gradient("bn.weight"), expected.weight), 1e-6);
  EXPECT_LE(test::relative_l2(rig_->gradient("bn.bias"), expected.bias), 1e-6);
}

TEST_P(BatchNormLayer, WithoutWeightHasBuffersAlone) {
  use({.affine = false});
  EXPECT_TRUE(rig_->registry.parameters.empty());
  EXPECT_EQ(rig_->registry.buffers.front()->name, "bn.running_mean");
  EXPECT_EQ(rig_->registry.counters.front()->name, "bn.num_batches_tracked");
}

TEST(BatchNorm, OfOneValueAChannelIsRefused) {
  Rig rig(norm_alone(), {{1, 3, 1, 1}, Layout::nchw},
          {.loss = [](const Variable& y, const Variable& labels) {
            return softmax_cross_entropy(y.reshaped({1, 3}), labels);
          }});
  const Tensor x = test::random_tensor(*rig.device, {1, 3, 1, 1}, 1);
  rig.tape.begin({});
  try {
    rig.model->forward(rig.tape, rig.tape.constant(x));
    FAIL() << "it has no variance";
  } catch (const ContractError& error) {
    EXPECT_NE(std::string(error.what()).find("more than one value a channel"), std::string::npos);
  }
  rig.tape.begin({.training = false});
  EXPECT_NO_THROW(rig.model->forward(rig.tape, rig.tape.constant(x)));
}

// x is the norm's input and its residual as well: both gradients go to the same memory.
TEST_P(BatchNormLayer, MayHaveItsInputAsItsResidual) {
  auto graph = std::make_unique<Graph>();
  Parameter& shift = graph->add("shift", {3});
  auto norm = std::make_shared<BatchNorm2d>(3);
  Registry inner;
  norm->register_in(inner, "bn.");
  const Tensor gradient(*device_, kShape, DType::f32, GetParam());
  graph->set([&, norm](Tape& tape, const Variable& x) {
    const Variable h = probed(x, tape.parameter(shift), gradient);
    RunningStatistics& running = *inner.running.front();
    return weighted_sum(batch_norm(h, {}, {}, running, {}, h, Activation::none), coefficients_);
  });
  Rig rig(std::move(graph), {kShape, GetParam()}, {.loss = output_is_loss});
  rig.step(image_);
  auto expected = test::reference::batch_norm_backward<double>(kShape, moments(), 1e-5, {},
                                                               doubles(x_), doubles(dy_))
                      .dx;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<double>(dy_[i]);
  EXPECT_LE(test::relative_l2(test::read(gradient), expected), 2e-6);
}

std::int64_t count_of(Layer& model) {
  std::int64_t count = 0;
  for (const Parameter* p : register_model(model).parameters) count += p->shape.count();
  return count;
}

// torchvision's numbers; resnet20's is the paper's 0.27 million with the shortcuts of option B.
TEST(ResNet, HasAsManyParametersAsItShould) {
  const ModelInput photographs{3, 224, 224, 1000}, small{3, 32, 32, 10};
  EXPECT_EQ(count_of(*make_resnet18(photographs)), 11'689'512);
  EXPECT_EQ(count_of(*make_resnet34(photographs)), 21'797'672);
  EXPECT_EQ(count_of(*make_resnet50(photographs)), 25'557'032);
  EXPECT_EQ(count_of(*make_resnet18_cifar(small)), 11'173'962);
  EXPECT_EQ(count_of(*make_resnet20(small)), 272'474);
}

/// PyTorch counts the weight of `features` too, which is 1 and not learnt.
std::int64_t count_with_ones(Layer& model) {
  std::int64_t count = count_of(model);
  for (const StateBuffer* buffer : register_model(model).buffers) {
    if (buffer->name == "features.weight") count += buffer->shape.count();
  }
  return count;
}

// InsightFace's numbers for its 112 x 112 and 512; other sizes change the linear layer alone.
TEST(FaceResNet, HasAsManyParametersAsItShould) {
  const ModelInput faces{3, 112, 112, 512};
  EXPECT_EQ(count_with_ones(*make_iresnet18(faces)), 24'025'600);
  EXPECT_EQ(count_with_ones(*make_iresnet34(faces)), 34'139'328);
  EXPECT_EQ(count_with_ones(*make_iresnet50(faces)), 43'590'848);
  EXPECT_EQ(count_with_ones(*make_iresnet100(faces)), 65'156'160);
  EXPECT_EQ(count_with_ones(*make_iresnet18({3, 65, 28, 512})),
            24'025'600 - std::int64_t{512} * 512 * (7 * 7 - 5 * 2));
}

// What fc multiplies, what `features` normalises and what a loss is given, whatever the layers
// before have.
TEST(FaceResNet, IsF32FromItsLinearLayerOn) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name_of(dtype));
    const auto model = make_iresnet18({3, 32, 32, 16});
    const RecordedGraph graph = record_graph(*model, register_model(*model), {2, 3, 32, 32}, dtype);
    const auto type_of = [&](int value) {
      return graph.values().at(static_cast<std::size_t>(value)).dtype;
    };
    EXPECT_EQ(type_of(graph.output()), DType::f32);
    int casts = 0, wide = 0;
    for (const RecordedGraph::Step& step : graph.steps()) {
      const bool head = step.layer == "fc" || step.layer == "features";
      wide += head ? 1 : 0;
      if (step.operation == "cast") {
        ++casts;
        EXPECT_EQ(step.layer, "in_f32");
        EXPECT_EQ(type_of(step.output), DType::f32);
      } else {
        EXPECT_EQ(type_of(step.output), head ? DType::f32 : dtype) << step.layer;
      }
      EXPECT_EQ(type_of(step.inputs.at(0)), head ? DType::f32 : dtype) << step.layer;
    }
    EXPECT_EQ(casts, dtype == DType::f32 ? 0 : 1);
    EXPECT_GE(wide, 2);
  }
}

TEST(FaceResNet, HasInsightFacesTensors) {
  const auto model = make_iresnet18({3, 112, 112, 512});
  const Registry registry = register_model(*model);
  std::vector<std::string> names;
  for (const Parameter* p : registry.parameters) names.push_back(p->name);
  const std::vector<std::string> first{"conv1.weight",
                                       "bn1.weight",
                                       "bn1.bias",
                                       "prelu.weight",
                                       "layer1.0.bn1.weight",
                                       "layer1.0.bn1.bias",
                                       "layer1.0.conv1.weight",
                                       "layer1.0.bn2.weight",
                                       "layer1.0.bn2.bias",
                                       "layer1.0.prelu.weight",
                                       "layer1.0.conv2.weight",
                                       "layer1.0.bn3.weight",
                                       "layer1.0.bn3.bias",
                                       "layer1.0.downsample.0.weight",
                                       "layer1.0.downsample.1.weight",
                                       "layer1.0.downsample.1.bias",
                                       "layer1.1.bn1.weight"};
  const std::vector<std::string> last{"bn2.weight", "bn2.bias", "fc.weight", "fc.bias",
                                      "features.bias"};
  ASSERT_GT(names.size(), first.size() + last.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), names.begin()));
  EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), names.rbegin()));
  for (const StateBuffer* buffer : registry.buffers) {
    if (buffer->name != "features.weight") continue;
    EXPECT_EQ(buffer->shape, (Shape{512}));
    EXPECT_EQ(buffer->start, 1);
  }
  EXPECT_EQ(registry.counters.size(), 31U);  // a norm each
}

TEST(ResNet, HasTorchvisionsTensors) {
  const auto model = make_resnet18({3, 224, 224, 10});
  const Registry registry = register_model(*model);
  EXPECT_EQ(registry.parameters.size(), 62u);
  EXPECT_EQ(registry.buffers.size() + registry.counters.size(), 60u);
  std::vector<std::string> names;
  for (const Parameter* p : registry.parameters) names.push_back(p->name);
  for (const char* name :
       {"conv1.weight", "bn1.bias", "layer1.0.conv1.weight", "layer1.1.bn2.bias",
        "layer2.0.downsample.0.weight", "layer4.0.downsample.1.weight", "fc.bias"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  EXPECT_EQ(registry.counters.back()->name, "layer4.1.bn2.num_batches_tracked");
}

}  // namespace
}  // namespace ringlet::nn
