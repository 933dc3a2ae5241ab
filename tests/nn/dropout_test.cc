// What dropout's mask depends on: seed, epoch, sample position and layer; not batch, not layout.
#include "nn/ops/dropout.h"

#include <gtest/gtest.h>

#include "kernels/batch_position.h"
#include "kernels/host_copy.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

constexpr std::int64_t kFeatures = 50;
constexpr float kProbability = 0.2F;
using Floats = std::vector<float>;

/// Two dropouts of the same input, side by side, and the gradients behind them.
class DropoutTest : public ::testing::TestWithParam<Layout> {
 protected:
  struct Masks {
    Floats first, second, gradient;  // of ones; the gradient is that behind `first`
  };

  Masks run(std::int64_t samples, const StepContext& context) {
    const auto device = open_device({});
    const Shape shape{samples, kFeatures};
    const Floats ones(static_cast<std::size_t>(shape.count()), 1);
    const Tensor x = test::upload(*device, shape, ones, GetParam());
    const Tensor gradient = test::upload(*device, shape, ones, GetParam());

    Sequential layers;
    auto& first = layers.add<Dropout>("first", kProbability);
    auto& second = layers.add<Dropout>("second", kProbability);
    Registry names;
    layers.register_in(names, "");

    Masks masks;
    auto graph = std::make_unique<Graph>();
    Parameter& wanting = graph->add("wanting", {1});
    graph->set([&](Tape& tape, const Variable& input) {
      const Variable z = probed(input, tape.parameter(wanting), gradient);
      const Variable a = first.forward(tape, z), b = second.forward(tape, input);
      if (tape.device().id().kind != DeviceKind::meta) {
        masks.first = test::read(a.value());
        masks.second = test::read(b.value());
      }
      return weighted_sum(a, x);
    });
    Rig rig(std::move(graph), {shape, GetParam()}, {.loss = output_is_loss});
    const Tensor labels = test::upload<std::int32_t>(*device, {1}, {0});
    rig.tape.backward(rig.forward(x, labels, context), rig.seed);
    masks.gradient = test::read(gradient.view());
    return masks;
  }
};
TEST(Dropouts, OfOneNameAreRefused) {
  Sequential layers;
  layers.add<Dropout>("drop", kProbability);
  layers.add<Dropout>("drop", kProbability);
  Registry registry;
  EXPECT_THROW(layers.register_in(registry, ""), ContractError);
}

TEST(Dropouts, WithoutANameAreRefused) {
  Dropout dropout(kProbability);
  const auto device = open_device({});
  Arena arena(*device, 1 << 16);
  Tape tape(*device, arena, {});
  tape.begin({});
  EXPECT_THROW(dropout.forward(tape, tape.make({1, kFeatures}, Layout::nchw)), ContractError);
}

INSTANTIATE_TEST_SUITE_P(Layouts, DropoutTest, ::testing::Values(Layout::nchw, Layout::lanes),
                         [](const auto& test) { return name_of(test.param); });

const StepContext kContext{.seed = 1, .epoch = 2, .first_sample = 30};

TEST_P(DropoutTest, KeepsTheShareThatIsAskedForAndItsMean) {
  const Floats mask = run(200, kContext).first;
  double dropped = 0;
  for (const float factor : mask) {
    if (factor == 0) {
      ++dropped;
    } else {
      EXPECT_FLOAT_EQ(factor, 1 / (1 - kProbability));
    }
  }
  // 10,000 draws: the share's standard deviation is 0.004.
  EXPECT_NEAR(dropped / static_cast<double>(mask.size()), kProbability, 0.02);
}

TEST_P(DropoutTest, BackwardDropsWhatForwardDropped) {
  const Masks masks = run(17, kContext);
  EXPECT_EQ(masks.gradient, masks.first);
}

TEST_P(DropoutTest, DependsOnSeedEpochSampleAndLayer) {
  const Masks masks = run(17, kContext);
  EXPECT_EQ(run(17, kContext).first, masks.first);
  EXPECT_NE(run(17, {.seed = 2, .epoch = 2, .first_sample = 30}).first, masks.first);
  EXPECT_NE(run(17, {.seed = 1, .epoch = 3, .first_sample = 30}).first, masks.first);
  EXPECT_NE(run(17, {.seed = 1, .epoch = 2, .first_sample = 31}).first, masks.first);
  EXPECT_NE(masks.second, masks.first);
}

TEST_P(DropoutTest, ASampleHasItsMaskInWhateverBatchItIs) {
  const Floats whole = run(40, kContext).first;
  StepContext later = kContext;
  later.first_sample += 23;
  const Floats part = run(17, later).first;
  EXPECT_EQ(part, Floats(whole.begin() + 23 * kFeatures, whole.end()));
}

TEST_P(DropoutTest, APositionInDeviceMemoryGivesTheSameMask) {
  const auto device = open_device({});
  const Tensor position(*device, batch_position_shape(), DType::u8);
  const BatchPosition where{kContext.epoch, kContext.first_sample};
  copy_from_host(device->compute(), &where, position);
  StepContext elsewhere{.seed = kContext.seed, .epoch = 77, .first_sample = 99};  // not looked at
  elsewhere.position = position;
  EXPECT_EQ(run(17, elsewhere).first, run(17, kContext).first);
}

TEST_P(DropoutTest, OnlyThatCanBeReplayed) {
  const auto device = open_device({});
  Arena arena(*device, 1 << 20);
  Tape tape(*device, arena, {});
  const Tensor x = test::upload(*device, {3, 4}, Floats(12, 1), GetParam());
  const Tensor position(*device, batch_position_shape(), DType::u8);
  const BatchPosition where{};
  copy_from_host(device->compute(), &where, position);
  tape.begin(kContext);
  EXPECT_TRUE(tape.repeatable());
  dropout(tape.constant(x), kProbability, 1);
  EXPECT_FALSE(tape.repeatable());
  StepContext replayed = kContext;
  replayed.position = position;
  tape.begin(replayed);
  dropout(tape.constant(x), kProbability, 1);
  EXPECT_TRUE(tape.repeatable());
}

TEST_P(DropoutTest, IsTheIdentityOutsideTraining) {
  StepContext evaluation = kContext;
  evaluation.training = false;
  const Floats mask = run(17, evaluation).first;
  EXPECT_EQ(mask, Floats(mask.size(), 1));
}

}  // namespace
}  // namespace ringlet::nn
