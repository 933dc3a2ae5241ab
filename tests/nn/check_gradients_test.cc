// check_gradients(): takes every layer of the library, and names the gradient of one that is wrong.
#include "nn/check_gradients.h"

#include <gtest/gtest.h>

#include "nn/layers/batch_norm2d.h"
#include "nn/layers/concat.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/prelu.h"
#include "nn/layers/residual_block.h"
#include "nn/layers/sharded_linear.h"
#include "nn/layers/stateless.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

class CheckGradients : public ::testing::TestWithParam<Layout> {
 protected:
  void expect_right(Layer& layer, const Shape& input) {
    EXPECT_NO_THROW(check_gradients(layer, input, {.layout = GetParam()}));
    EXPECT_TRUE(layer.takes(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, CheckGradients, ::testing::Values(Layout::nchw, Layout::lanes),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(CheckGradients, TakesTheLibrarysLayers) {
  const Shape rows{18, 6}, images{18, 4, 6, 5};
  Linear linear(6, 5);
  expect_right(linear, rows);
  ShardedLinear sharded(6, 5);  // one rank has all rows
  expect_right(sharded, rows);
  Sigmoid sigmoid;
  expect_right(sigmoid, rows);
  Tanh tanh;
  expect_right(tanh, images);
  ReLU relu;
  expect_right(relu, rows);
  Dropout dropout(0.4F);
  expect_right(dropout, rows);
  Conv2d conv({.in_channels = 4, .out_channels = 3, .kernel = {3, 3}});
  expect_right(conv, images);
  AvgPool2d average({});
  expect_right(average, images);
  MaxPool2d maximum({});
  expect_right(maximum, images);
  BatchNorm2d norm(4);
  expect_right(norm, images);
  ResidualBlock block("bn2", 4);
  block.body().add<Conv2d>(
      "conv",
      Conv2dOptions{
          .in_channels = 4, .out_channels = 4, .kernel = {3, 3}, .spec = {.padding = {1, 1}}});
  expect_right(block, images);
  PReLU slopes(4), slope;
  expect_right(slopes, images);
  expect_right(slope, images);
  InF32 same;
  expect_right(same, rows);
  BatchNorm2d features(6, {.weight_is_one = true});
  expect_right(features, rows);
  ResidualBlock plain("bn3", 4, Activation::none);
  plain.body().add<BatchNorm2d>("bn1", 4);
  plain.body().add<Tanh>("tanh");
  expect_right(plain, images);
  Concat concat;
  concat.add("left").add<Linear>("fc", 6, 2);
  concat.add("through");
  concat.add("right").add<Tanh>("tanh");
  expect_right(concat, rows);
}

/// y = a x, whose backward does what the mode says.
class Times : public Layer {
 public:
  enum class Mode { right, wrong_input, wrong_parameter, touches_memory };
  explicit Times(Mode mode) : mode_(mode) {}

  Variable forward(Tape& tape, const Variable& x) override {
    const Variable a = tape.parameter(a_), y = tape.make(x.shape(), x.layout());
    if (mode_ == Mode::touches_memory || tape.device().id().kind != DeviceKind::meta) {
      ringlet::scale(tape.stream(), *a.value().f32(), x.value(), 0, y.value());
    }
    tape.record("times", {x, a}, y, [=, mode = mode_](Backward& backward) {
      const auto [dx, beta_x] = backward.target(x);
      const auto [da, beta_a] = backward.target(a);
      if (backward.stream().device().id().kind == DeviceKind::meta) return;
      const float factor = mode == Mode::wrong_input ? 1 : *a.value().f32();
      const View dy = backward.gradient(y);
      ringlet::scale(backward.stream(), factor, dy, beta_x, dx);
      float sum = mode == Mode::wrong_parameter ? 1 : 0;
      for (std::int64_t i = 0; i < dy.storage(); ++i) sum += dy.f32()[i] * x.value().f32()[i];
      *da.f32() = beta_a == 0 ? sum : *da.f32() + sum;
    });
    return y;
  }
  void register_in(Registry& registry, const std::string& prefix) override {
    registry.add(a_, prefix + "a");
  }

 private:
  Mode mode_;
  Parameter a_{{1}, Initializer::constant(3)};
};

std::string refusal_of(Times::Mode mode) {
  Times layer(mode);
  try {
    check_gradients(layer, {3, 4});
  } catch (const ContractError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckGradientsOfOnesOwn, NamesWhatIsWrong) {
  EXPECT_EQ(refusal_of(Times::Mode::right), "");
  EXPECT_NE(refusal_of(Times::Mode::wrong_input).find("the gradient of the input, element 0 of "),
            std::string::npos)
      << refusal_of(Times::Mode::wrong_input);
  EXPECT_NE(refusal_of(Times::Mode::wrong_parameter).find("the gradient of a, element 0 of [1]"),
            std::string::npos)
      << refusal_of(Times::Mode::wrong_parameter);
  EXPECT_NE(refusal_of(Times::Mode::touches_memory).find("dry run"), std::string::npos)
      << refusal_of(Times::Mode::touches_memory);
}

// A second check of one layer is like the first, and the layer can be trained afterwards.
TEST(CheckGradientsOfOnesOwn, LeavesALayerThatCanBeUsed) {
  auto layer = std::make_unique<Linear>(4, 2);
  const double first = check_gradients(*layer, {3, 4});
  EXPECT_EQ(check_gradients(*layer, {3, 4}), first);
  Rig rig(std::move(layer), {{2, 4}});
  EXPECT_GT(rig.step(test::upload<float>(*rig.device, {2, 4}, std::vector<float>(8, 1)),
                     test::upload<std::int32_t>(*rig.device, {2}, {0, 1})),
            0);
}

}  // namespace
}  // namespace ringlet::nn
