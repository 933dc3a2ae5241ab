// Training with the channels last, as tensor cores want them. It learns what nchw learns: on the
// stand-in for GPUs up to f32's rounding, on a GPU with --tf32 up to that of 11 bits.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "kernels/cuda_devices.h"
#include "nn/layers/concat.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/residual.h"
#include "nn/layers/residual_block.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/flatten.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "tests/train/stand_in_nodes.h"
#include "train/loop/replica.h"

namespace ringlet::train {
namespace {

TEST(Layouts, AreChosenOnceByTheDevice) {
  constexpr auto kAuto = LayoutChoice::automatic;
  ReplicaSpec spec;
  EXPECT_EQ(choose_layout(kAuto, DeviceKind::cpu, 16, spec), Layout::lanes);
  EXPECT_EQ(choose_layout(kAuto, DeviceKind::cpu, 15, spec), Layout::nchw);
  EXPECT_EQ(choose_layout(kAuto, DeviceKind::cuda, 16, spec), Layout::nchw);
  EXPECT_EQ(choose_layout(LayoutChoice::nhwc, DeviceKind::cuda, 16, spec), Layout::nhwc);
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::f16}) {
    spec.recipe.precision = precision;
    EXPECT_EQ(choose_layout(kAuto, DeviceKind::cuda, 16, spec), Layout::nhwc);
  }
  EXPECT_EQ(choose_layout(LayoutChoice::nchw, DeviceKind::cuda, 16, spec), Layout::nchw);
}

/// y = x, by a layer that knows rows alone.
class InRows : public nn::Layer {
  nn::Variable forward(nn::Tape&, const nn::Variable& x) override { return x; }
};

TEST(Layouts, AreThoseThatALayerOfOnesOwnTakes) {
  const auto layout_of = [](nn::Sequential& (*place)(nn::Sequential&), LayoutChoice choice,
                            DeviceKind device) {
    ReplicaSpec spec;
    spec.recipe.precision = Precision::bf16;
    spec.make_model = [place](const nn::ModelInput&) {
      auto net = std::make_unique<nn::Sequential>();
      net->add<nn::Linear>("fc", 4, 4);
      if (place != nullptr) place(*net).add<InRows>("own");
      return net;
    };
    return choose_layout(choice, device, 16, spec);
  };
  for (const auto device : {DeviceKind::cpu, DeviceKind::cuda}) {
    const Layout fastest = device == DeviceKind::cpu ? Layout::lanes : Layout::nhwc;
    EXPECT_EQ(layout_of(nullptr, LayoutChoice::automatic, device), fastest);
    for (const auto place : {
             +[](nn::Sequential& net) -> nn::Sequential& { return net; },
             +[](nn::Sequential& net) -> nn::Sequential& {
               return net.add<nn::Residual>("residual").body();
             },
             +[](nn::Sequential& net) -> nn::Sequential& {
               return net.add<nn::Residual>("residual").shortcut();
             },
             +[](nn::Sequential& net) -> nn::Sequential& {
               return net.add<nn::ResidualBlock>("block", "bn", 4).downsample();
             },
             +[](nn::Sequential& net) -> nn::Sequential& {
               return net.add<nn::Concat>("concat").add("branch");
             },
         }) {
      EXPECT_EQ(layout_of(place, LayoutChoice::automatic, device), Layout::nchw);
      const LayoutChoice named =
          fastest == Layout::lanes ? LayoutChoice::lanes : LayoutChoice::nhwc;
      EXPECT_NE(testing::message_of<ContractError>([&] {
                  layout_of(place, named, device);
                }).find("Layer::takes()"),
                std::string::npos);
    }
  }
}

TEST(Layouts, ThatADeviceLacksAreRefused) {
  TrainOptions options = plain_options(1);
  options.execution.layout = LayoutChoice::nhwc;
  const auto refusal = [&] {
    return testing::message_of<ContractError>(
        [&] { (void)make_run_setup(options, formula_splits(64), 1); });
  };
  EXPECT_EQ(refusal(), "--layout nhwc: is for GPUs; leave it out");
  options.execution.layout = LayoutChoice::lanes;
  options.execution.devices = {{DeviceKind::cuda, 0}};
  EXPECT_EQ(refusal(), "--layout lanes: is for the CPU; leave it out");
}

/// What the models of the card lack: maximum pooling, dropout, and rows of pixels that two layers
/// read, so that gradients are added where channels change their order.
class TwoHeads : public nn::Layer {
 public:
  explicit TwoHeads(const nn::ModelInput& input)
      : conv_({.in_channels = input.channels, .out_channels = 8, .kernel = {3, 3}}),
        pool_({.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}),
        dropout_(0.25F),
        first_(8 * kRows * kRows, input.outputs),
        second_(8 * kRows * kRows, input.outputs) {}

  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    const nn::Variable y = dropout_.forward(
        tape, pool_.forward(tape, nn::ReLU().forward(tape, conv_.forward(tape, x))));
    return nn::add(first_.forward(tape, nn::flatten(y)), second_.forward(tape, nn::flatten(y)));
  }
  bool takes(Layout /*layout*/) const override { return true; }
  void register_in(nn::Registry& registry, const std::string& prefix) override {
    conv_.register_in(registry, prefix + "conv.");
    dropout_.register_in(registry, prefix + "dropout.");
    first_.register_in(registry, prefix + "first.");
    second_.register_in(registry, prefix + "second.");
  }

 private:
  static constexpr std::int64_t kRows = 13;  // (28 - 2) / 2
  nn::Conv2d conv_;
  nn::MaxPool2d pool_;
  nn::Dropout dropout_;
  nn::Linear first_, second_;
};

std::unique_ptr<nn::Layer> make_two_heads(const nn::ModelInput& input) {
  return std::make_unique<TwoHeads>(input);
}

struct Case {
  const char* name;
  std::string model;  // of the card; or "normed", "heads"
  bool fuse = true;
  bool graph = true;
  int replicas = 1;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class CudaNhwc : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << survey_cuda().why_none;
  }
  static TrainOptions options(LayoutChoice layout) {
    const Case& c = GetParam();
    TrainOptions options = plain_options(c.replicas);
    options.recipe.model = c.model;
    if (c.model == "normed") options = normed(options);
    if (c.model == "heads") options.make_model = make_two_heads;
    options.recipe.batch_size = 16;
    options.recipe.accumulate = 2;
    options.execution.devices.assign(static_cast<std::size_t>(c.replicas), {DeviceKind::cuda, 0});
    options.execution.layout = layout;
    options.execution.tf32 = true;
    options.execution.fuse = c.fuse;
    options.execution.graph = c.graph;
    options.max_steps = 4;
    return options;
  }
};

TEST_P(CudaNhwc, LearnsWhatNchwLearns) {
  const auto data = formula_splits(64);
  ASSERT_EQ(
      make_run_setup(options(LayoutChoice::automatic), data, GetParam().replicas).replica.layout,
      Layout::nhwc);
  const Outcome nhwc = run(options(LayoutChoice::automatic), data);
  const Outcome nchw = run(options(LayoutChoice::nchw), data);
  const double tolerance = on_stand_in() ? 2e-5 : 2e-2;
  EXPECT_LE(distance(nhwc.state, nchw.state), tolerance);
  ASSERT_FALSE(nhwc.epochs.empty());
  EXPECT_NEAR(nhwc.epochs.back().test.loss, nchw.epochs.back().test.loss,
              tolerance * nchw.epochs.back().test.loss);
}

INSTANTIATE_TEST_SUITE_P(
    Models, CudaNhwc,
    ::testing::Values(Case{"lenet", "lenet"}, Case{"lenet_unfused", "lenet", false, false},
                      Case{"lenet_two", "lenet", true, true, 2}, Case{"normed", "normed"},
                      Case{"normed_unfused", "normed", false}, Case{"heads", "heads"}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace ringlet::train
