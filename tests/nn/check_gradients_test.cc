// check_gradients(): takes every layer of the library, and names the gradient of one that is wrong.
#include "nn/check_gradients.h"

#include <gtest/gtest.h>

#include "nn/layers/batch_norm2d.h"
#include "nn/layers/concat.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/prelu.h"
#include "nn/layers/residual_block.h"
#include "nn/layers/sequential.h"
#include "nn/layers/sharded_linear.h"
#include "nn/layers/stateless.h"
#include "nn/models/lenet.h"
#include "nn/models/mlp.h"
#include "tests/nn/support.h"
#include "tests/support/files.h"

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
  AdaptiveAvgPool2d mean;
  expect_right(mean, images);
  Flatten flat;
  expect_right(flat, images);
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
  enum class Mode {
    right,
    wrong_input,
    wrong_parameter,
    touches_memory,
    overwrites_input,
    overwrites_parameter,
    half_an_output
  };
  explicit Times(Mode mode) : mode_(mode) {}

  Variable forward(Tape& tape, const Variable& x) override {
    const Variable a = tape.parameter(a_), y = tape.make(x.shape(), x.layout());
    if (mode_ == Mode::touches_memory || tape.device().id().kind != DeviceKind::meta) {
      const std::int64_t filled = x.value().storage() / (mode_ == Mode::half_an_output ? 2 : 1);
      for (std::int64_t i = 0; i < filled; ++i) {
        y.value().f32()[i] = *a.value().f32() * x.value().f32()[i];
      }
    }
    tape.record("times", {x, a}, y, [=, mode = mode_](Backward& backward) {
      const auto [dx, beta_x] = backward.target(x);
      const auto [da, beta_a] = backward.target(a);
      if (backward.stream().device().id().kind == DeviceKind::meta) return;
      const float factor = mode == Mode::wrong_input ? 1 : *a.value().f32();
      const View dy = backward.gradient(y);
      ringlet::scale(backward.stream(), factor, dy, mode == Mode::overwrites_input ? 0 : beta_x,
                     dx);
      float sum = mode == Mode::wrong_parameter ? 1 : 0;
      for (std::int64_t i = 0; i < dy.storage(); ++i) sum += dy.f32()[i] * x.value().f32()[i];
      *da.f32() = beta_a == 0 || mode == Mode::overwrites_parameter ? sum : *da.f32() + sum;
    });
    return y;
  }
  bool takes(Layout /*layout*/) const override { return true; }
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
  using ringlet::testing::says;
  EXPECT_TRUE(says(refusal_of(Times::Mode::overwrites_input),
                   {"the gradient of the input, element 0 of [3, 4], was", "beta is 1"}));
  EXPECT_TRUE(says(refusal_of(Times::Mode::overwrites_parameter),
                   {"the gradient of a, element 0 of [1], was", "beta is 1"}));
  EXPECT_TRUE(says(refusal_of(Times::Mode::half_an_output),
                   {"times leaves 6 of the 12 numbers of its output", "unwritten"}));
}

/// y = x w of [size, size], of whose gradient only column 0 is right.
class OneColumn : public Layer {
 public:
  OneColumn(std::int64_t size, bool writes_zeros)
      : size_(size), writes_zeros_(writes_zeros), w_({size, size}, Initializer::constant(1)) {}
  Variable forward(Tape& tape, const Variable& x) override {
    const Variable w = tape.parameter(w_), y = tape.make(x.shape(), x.layout());
    const bool has_memory = tape.device().id().kind != DeviceKind::meta;
    const std::int64_t rows = has_memory ? x.shape()[0] : 0, size = size_;
    for (std::int64_t at = 0; at < rows * size; ++at) {
      float sum = 0;
      for (std::int64_t k = 0; k < size; ++k) {
        sum += x.value().f32()[at / size * size + k] * w.value().f32()[at % size * size + k];
      }
      y.value().f32()[at] = sum;
    }
    tape.record("one_column", {x, w}, y, [=, writes_zeros = writes_zeros_](Backward& backward) {
      const auto [dx, beta_x] = backward.target(x);
      const auto [dw, beta_w] = backward.target(w);
      if (rows == 0) return;
      const View dy = backward.gradient(y);
      if (beta_x == 0) fill(backward.stream(), 0, dx);
      if (beta_w == 0 && writes_zeros) fill(backward.stream(), 0, dw);
      if (beta_w == 0) {
        for (std::int64_t i = 0; i < size; ++i) dw.f32()[i * size] = 0;
      }
      for (std::int64_t n = 0; n < rows; ++n) {
        for (std::int64_t i = 0; i < size; ++i) {
          const float d = dy.f32()[n * size + i];
          for (std::int64_t k = 0; k < size; ++k) {
            dx.f32()[n * size + k] += d * w.value().f32()[i * size + k];
          }
          dw.f32()[i * size] += d * x.value().f32()[n * size];
        }
      }
    });
    return y;
  }
  void register_in(Registry& registry, const std::string& prefix) override {
    registry.add(w_, prefix + "w");
  }

 private:
  std::int64_t size_;
  bool writes_zeros_;
  Parameter w_;
};

std::string refusal_of(Layer& layer, const Shape& input, const GradientCheck& options = {}) {
  return ringlet::testing::message_of<ContractError>(
      [&] { check_gradients(layer, input, options); });
}

// Of 64 x 64 elements every 128th lies in column 0.
TEST(CheckGradientsOfOnesOwn, LooksAtElementsOfAllColumns) {
  for (const std::int64_t size : {60, 64}) {
    OneColumn layer(size, true), sparse(size, false);
    EXPECT_TRUE(
        ringlet::testing::says(refusal_of(layer, {8, size}), {"the gradient of w", "is 0, and"}));
    EXPECT_TRUE(ringlet::testing::says(refusal_of(sparse, {8, size}),
                                       {"the gradient of w, element 1 of", "is nan"}));
  }
}

/// y[n, f] = f x[n, f], by rows, whatever the layout is.
class ByColumn : public Layer {
 public:
  explicit ByColumn(bool says_any) : says_any_(says_any) {}
  Variable forward(Tape& tape, const Variable& x) override {
    const Variable y = tape.make(x.shape(), x.layout());
    const bool has_memory = tape.device().id().kind != DeviceKind::meta;
    const std::int64_t columns = x.shape()[1], stored = has_memory ? x.value().storage() : 0;
    for (std::int64_t i = 0; i < stored; ++i) {
      y.value().f32()[i] = static_cast<float>(i % columns) * x.value().f32()[i];
    }
    tape.record("by_column", {x}, y, [=](Backward& backward) {
      const auto [dx, beta] = backward.target(x);
      const View dy = backward.gradient(y);
      for (std::int64_t i = 0; i < stored; ++i) {
        const float own = static_cast<float>(i % columns) * dy.f32()[i];
        dx.f32()[i] = beta == 0 ? own : dx.f32()[i] + own;
      }
    });
    return y;
  }
  bool takes(Layout layout) const override { return says_any_ || Layer::takes(layout); }

 private:
  bool says_any_;
};

TEST(CheckGradientsOfOnesOwn, ComparesLanesWithRowsWhereALayerSaysThatItTakesThem) {
  ByColumn rows(false), any(true);
  EXPECT_NO_THROW(check_gradients(rows, {8, 20}));
  EXPECT_TRUE(ringlet::testing::says(refusal_of(any, {8, 20}),
                                     {"the output, element ", "in lanes", "Layer::takes()"}));
}

TEST(CheckGradientsOfOnesOwn, NamesACheckOfNothing) {
  Linear layer(4, 3);
  for (const int elements : {0, -1}) {
    EXPECT_TRUE(ringlet::testing::says(refusal_of(layer, {8, 4}, {.elements = elements}),
                                       {"GradientCheck::elements is at least 1"}));
  }
  EXPECT_TRUE(ringlet::testing::says(refusal_of(layer, {0, 4}), {"at least one sample"}));
}

/// y = x, of whose gradient a part gets through.
class Part : public Layer {
 public:
  explicit Part(float part) : part_(part) {}
  Variable forward(Tape& tape, const Variable& x) override {
    const Variable y = tape.make(x.shape(), x.layout());
    if (tape.device().id().kind != DeviceKind::meta) copy(tape.stream(), x.value(), y.value());
    tape.record("part", {x}, y, [=, part = part_](Backward& backward) {
      const auto [dx, beta] = backward.target(x);
      if (backward.stream().device().id().kind == DeviceKind::meta) return;
      ringlet::scale(backward.stream(), part, backward.gradient(y), beta, dx);
    });
    return y;
  }
  bool takes(Layout /*layout*/) const override { return true; }

 private:
  float part_;
};

/// Layers that bend, behind one that takes the rest of their input's gradient away.
std::vector<std::unique_ptr<Sequential>> layers_that_bend(float part) {
  const auto conv = [](int in, int out) {
    return Conv2dOptions{
        .in_channels = in, .out_channels = out, .kernel = {3, 3}, .spec = {.padding = {1, 1}}};
  };
  std::vector<std::unique_ptr<Sequential>> all;
  for (int i = 0; i < 4; ++i) all.push_back(std::make_unique<Sequential>());
  all[0]->add<Part>("part", part);
  all[0]->add<ReLU>("relu");
  all[1]->add<Part>("part", part);
  all[1]->add<MaxPool2d>("pool", Pool2dSpec{});
  for (int i = 2; i < 4; ++i) {
    all[i]->add<Conv2d>("conv1", conv(3, 6));
    all[i]->add<Part>("part", part);
    if (i == 3) all[i]->add<BatchNorm2d>("bn", 6);
    all[i]->add<ReLU>("relu");
    if (i == 2) all[i]->add<Conv2d>("conv2", conv(6, 4));
  }
  return all;
}

TEST(CheckGradientsOfOnesOwn, AccusesNoneThatBendsAndFindsWhatIsWrongInIt) {
  const Shape images{8, 3, 8, 8};
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    for (const auto& layer : layers_that_bend(1)) {
      EXPECT_NO_THROW(check_gradients(*layer, images, {.seed = seed})) << seed;
    }
    for (const auto& layer : layers_that_bend(0.95F)) {
      EXPECT_THROW(check_gradients(*layer, images, {.seed = seed}), ContractError) << seed;
    }
  }
}

TEST(CheckGradientsOfOnesOwn, TakesWholeModels) {
  const ModelInput input{1, 28, 28, 10};
  EXPECT_NO_THROW(check_gradients(*make_lenet(input, LeNetStart::practitioner), {4, 1, 28, 28}));
  EXPECT_NO_THROW(check_gradients(*make_mlp(input), {4, 1, 28, 28}));
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
