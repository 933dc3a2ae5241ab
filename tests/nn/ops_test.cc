// Every differentiable operation against values and gradients worked out by hand, in both layouts.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/ops/concat.h"
#include "nn/ops/conv2d.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/linear.h"
#include "nn/ops/pointwise_loss.h"
#include "nn/ops/pool2d.h"
#include "nn/ops/prelu.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

using Floats = std::vector<float>;
using Operation = std::function<Variable(const Variable& x, const std::vector<Variable>& learnt)>;

struct Learnt {
  Shape shape;
  Floats value;
  Floats gradient;
};

/// y = operation(x) and the gradient of sum of c * y.
struct OpCase {
  std::string name;
  Operation operation;
  Shape x_shape;
  Floats x;
  Shape y_shape;
  Floats c;
  Floats y;
  Floats dx;
  std::vector<Learnt> learnt = {};
};

void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name; }

Operation linear_with(Activation activation) {
  return [=](const Variable& x, const std::vector<Variable>& p) {
    return linear(x, p[0], p[1], activation);
  };
}

Operation conv_with(Activation activation) {
  return [=](const Variable& x, const std::vector<Variable>& p) {
    return conv2d(x, p[0], p[1], {}, activation);
  };
}

const Floats kLinearX{1, 2, 3, -1, 0, 2}, kLinearW{1, 0, -1, 2, 1, 0}, kLinearB{0.5F, -1};
const Floats kConvX{1, 2, 3, 4, 5, 6, 0, 1, 0, -1, 0, 2}, kConvW{1, -1, 2, 0.5F};

const OpCase kCases[] = {
    {"scale",
     [](const Variable& x, const auto&) { return scale(x, 0.5F); },
     {2, 2},
     {1, -2, 3, 4},
     {2, 2},
     {1, 10, 100, 1000},
     {0.5F, -1, 1.5F, 2},
     {0.5F, 5, 50, 500}},
    {"add",
     [](const Variable& x, const auto&) { return add(x, scale(x, 3)); },
     {2, 1, 1, 2},
     {1, -2, 3, 4},
     {2, 1, 1, 2},
     {1, 10, 100, 1000},
     {4, -8, 12, 16},
     {4, 40, 400, 4000}},
    {"relu",
     [](const Variable& x, const auto&) { return relu(x); },
     {2, 2},
     {-1, 0, 2, 3},
     {2, 2},
     {1, 10, 100, 1000},
     {0, 0, 2, 3},
     {0, 0, 100, 1000}},
    {"sigmoid",
     [](const Variable& x, const auto&) { return sigmoid(x); },
     {2, 2},
     {0, 0, 0, 0},
     {2, 2},
     {1, 10, 100, 1000},
     {0.5F, 0.5F, 0.5F, 0.5F},
     {0.25F, 2.5F, 25, 250}},
    {"tanh",
     [](const Variable& x, const auto&) { return tanh(x); },
     {2, 2},
     {0, 0, 200, -200},
     {2, 2},
     {1, 10, 100, 1000},
     {0, 0, 1, -1},
     {1, 10, 0, 0}},
    {"prelu",
     [](const Variable& x, const auto& p) { return prelu(x, p[0]); },
     {2, 2},
     {-1, 0, 2, -3},
     {2, 2},
     {1, 10, 100, 1000},
     {-0.5F, 0, 2, -0.75F},
     {0.5F, 2.5F, 100, 250},
     {{{2}, {0.5F, 0.25F}, {-1, -3000}}}},
    {"concat",
     [](const Variable& x, const auto&) {
       return concat({x, scale(x, 3), x});
     },
     {2, 2},
     {1, -2, 3, 4},
     {2, 6},
     {1, 2, 10, 20, 100, 200, 3, 4, 30, 40, 300, 400},
     {1, -2, 3, -6, 1, -2, 3, 4, 9, 12, 3, 4},
     {131, 262, 393, 524}},
    {"linear",
     linear_with(Activation::none),
     {2, 3},
     kLinearX,
     {2, 2},
     {1, 2, 3, 4},
     {-1.5F, 3, -2.5F, -3},
     {5, 2, -1, 11, 4, -3},
     {{{2, 3}, kLinearW, {-2, 2, 9, -2, 4, 14}}, {{2}, kLinearB, {4, 6}}}},
    {"linear_relu",
     linear_with(Activation::relu),
     {2, 3},
     kLinearX,
     {2, 2},
     {1, 2, 3, 4},
     {0, 3, 0, 0},
     {4, 2, 0, 0, 0, 0},
     {{{2, 3}, kLinearW, {0, 0, 0, 2, 4, 6}}, {{2}, kLinearB, {0, 2}}}},
    {"linear_without_bias",
     [](const Variable& x, const auto& p) { return linear(x, p[0], {}); },
     {2, 3},
     kLinearX,
     {2, 2},
     {1, 2, 3, 4},
     {-2, 4, -3, -2},
     {5, 2, -1, 11, 4, -3},
     {{{2, 3}, kLinearW, {-2, 2, 9, -2, 4, 14}}}},
    {"conv2d",
     conv_with(Activation::none),
     {2, 1, 2, 3},
     kConvX,
     {2, 1, 1, 2},
     {1, 2, 3, 4},
     {10.5F, 13, -2, 3},
     {1, 1, -2, 2, 4.5F, 1, 3, 1, -4, 6, 9.5F, 2},
     {{{1, 1, 2, 2}, kConvW, {9, 11, 11, 25}}, {{1}, {1}, {10}}}},
    {"conv2d_relu",
     conv_with(Activation::relu),
     {2, 1, 2, 3},
     kConvX,
     {2, 1, 1, 2},
     {1, 2, 3, 4},
     {10.5F, 13, 0, 3},
     {1, 1, -2, 2, 4.5F, 1, 0, 4, -4, 0, 8, 2},
     {{{1, 1, 2, 2}, kConvW, {9, 8, 14, 25}}, {{1}, {1}, {7}}}},
    {"conv2d_strided_and_padded",
     [](const Variable& x, const auto& p) {
       return conv2d(x, p[0], {}, {.stride = {2, 2}, .padding = {1, 1}});
     },
     {1, 1, 2, 2},
     {1, 2, 3, 4},
     {1, 1, 2, 2},
     {1, 2, 3, 4},
     {0, 0, 0, 8},
     {0, 0, 0, 8},
     {{{1, 1, 1, 1}, {2}, {16}}}},
    {"avg_pool2d",
     [](const Variable& x, const auto&) { return avg_pool2d(x, {}); },
     {2, 1, 2, 4},
     {1, 2, 3, 4, 5, 6, 7, 8, 4, 0, 0, 0, 0, 0, 0, 8},
     {2, 1, 1, 2},
     {4, 8, 12, 16},
     {3.5F, 5.5F, 1, 2},
     {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}},
    {"max_pool2d_with_shared_winners",
     [](const Variable& x, const auto&) {
       return max_pool2d(x, {.kernel = {1, 2}, .stride = {1, 1}});
     },
     {2, 1, 1, 4},
     {1, 5, 2, 2, 9, 0, 0, 7},
     {2, 1, 1, 3},
     {1, 2, 3, 4, 5, 6},
     {5, 5, 2, 9, 0, 7},
     {0, 3, 3, 0, 4, 5, 0, 6}},
};

class OpTest : public ::testing::TestWithParam<std::tuple<OpCase, Layout>> {};
INSTANTIATE_TEST_SUITE_P(Cases, OpTest,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values(Layout::nchw, Layout::lanes)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  name_of(std::get<1>(test.param));
                         });

TEST_P(OpTest, ValueAndGradientAreThoseWorkedOutByHand) {
  const auto& [op, layout] = GetParam();
  const auto device = open_device({});
  const Tensor c = test::upload(*device, op.y_shape, op.c, layout);
  const Tensor dx(*device, op.x_shape, DType::f32, layout);
  fill(device->compute(), NAN, dx);
  Floats y;

  auto graph = std::make_unique<Graph>();
  Parameter& wanting = graph->add("wanting", {1});
  std::vector<Parameter*> learnt;
  for (const Learnt& one : op.learnt) {
    learnt.push_back(&graph->add("learnt" + std::to_string(learnt.size()), one.shape));
  }
  graph->set([&, &operation = op.operation](Tape& tape, const Variable& x) {
    std::vector<Variable> variables;
    for (Parameter* parameter : learnt) variables.push_back(tape.parameter(*parameter));
    const Variable result = operation(probed(x, tape.parameter(wanting), dx), variables);
    if (tape.device().id().kind != DeviceKind::meta) y = test::read(result.value());
    return weighted_sum(result, c);
  });
  Rig rig(std::move(graph), {op.x_shape, layout}, {.loss = output_is_loss});
  for (std::size_t i = 0; i < learnt.size(); ++i) {
    test::write(learnt[i]->value, op.learnt[i].value);
  }

  rig.step(test::upload(*device, op.x_shape, op.x, layout));
  EXPECT_EQ(y, op.y);
  EXPECT_EQ(test::read(dx.view()), op.dx);
  for (const float lane : test::read_padding(dx.view())) EXPECT_EQ(lane, 0);
  for (std::size_t i = 0; i < learnt.size(); ++i) {
    EXPECT_EQ(test::read(learnt[i]->gradient), op.learnt[i].gradient) << i;
  }
}

class LossTest : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, LossTest, ::testing::Values(Layout::nchw, Layout::lanes),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(LossTest, SoftmaxCrossEntropyIsThatWorkedOutByHand) {
  const auto device = open_device({});
  const Tensor dz(*device, {2, 2}, DType::f32, GetParam());
  auto graph = std::make_unique<Graph>();
  Parameter& wanting = graph->add("wanting", {1});
  graph->set([&](Tape& tape, const Variable& z) { return probed(z, tape.parameter(wanting), dz); });
  Rig rig(std::move(graph), {{2, 2}, GetParam()});
  test::write<float>(rig.seed, {4});
  const float loss =
      rig.step(test::upload<float>(*device, {2, 2}, {0, 0, std::log(3.0F), 0}, GetParam()),
               test::upload<std::int32_t>(*device, {2}, {0, 1}));
  EXPECT_FLOAT_EQ(loss, 3 * std::log(2.0F));  // log 2 + log 4, whatever the seed is
  EXPECT_LT(test::relative_l2(test::read(dz.view()), Floats{-2, 2, 3, -3}), 1e-6);
  for (const float lane : test::read_padding(dz.view())) EXPECT_EQ(lane, 0);
}

// Targets lie row-major, as a data set has them, whatever the predictions' layout and shape.
TEST_P(LossTest, MeanSquaredErrorIsThatWorkedOutByHand) {
  const auto device = open_device({});
  const Tensor dp(*device, {2, 2, 1, 1}, DType::f32, GetParam());
  auto graph = std::make_unique<Graph>();
  Parameter& wanting = graph->add("wanting", {1});
  graph->set([&](Tape& tape, const Variable& p) { return probed(p, tape.parameter(wanting), dp); });
  const Tensor targets = test::upload<float>(*device, {2, 2}, {1, 1, 3, 2});
  const Tensor sum = test::upload<float>(*device, {1}, {10});
  Rig rig(std::move(graph), {{2, 2, 1, 1}, GetParam()},
          {.loss = [&](const Variable& p, const Variable&) {
            return mean_squared_error(p, p.tape().constant(targets), sum);
          }});
  test::write<float>(rig.seed, {4});
  const float loss = rig.step(test::upload<float>(*device, {2, 2, 1, 1}, {0, 1, 3, 5}, GetParam()));
  EXPECT_EQ(loss, 5);  // 1 / 2 + 9 / 2
  EXPECT_EQ(test::read(sum.view()), Floats{15});
  EXPECT_EQ(test::read(dp.view()), (Floats{-4, 0, 0, 12}));
  for (const float lane : test::read_padding(dp.view())) EXPECT_EQ(lane, 0);
}

TEST_P(LossTest, BinaryCrossEntropyIsThatWorkedOutByHand) {
  const auto device = open_device({});
  const Tensor dz(*device, {2, 1}, DType::f32, GetParam());
  auto graph = std::make_unique<Graph>();
  Parameter& wanting = graph->add("wanting", {1});
  graph->set([&](Tape& tape, const Variable& z) { return probed(z, tape.parameter(wanting), dz); });
  const Tensor targets = test::upload<float>(*device, {2, 1}, {1, 0.25F});
  Rig rig(std::move(graph), {{2, 1}, GetParam()}, {.loss = [&](const Variable& z, const Variable&) {
            return binary_cross_entropy(z, z.tape().constant(targets));
          }});
  const float loss =
      rig.step(test::upload<float>(*device, {2, 1}, {0, std::log(3.0F)}, GetParam()));
  // log 2; log 4 - log(3) / 4, since sigmoid(log 3) is 3/4
  EXPECT_FLOAT_EQ(loss, std::log(8.0F) - std::log(3.0F) / 4);
  EXPECT_LT(test::relative_l2(test::read(dz.view()), Floats{-0.5F, 0.5F}), 1e-6);
}

}  // namespace
}  // namespace ringlet::nn
