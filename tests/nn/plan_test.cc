// The dry run foretells the real run: order, ranges, uses, memory, cost, and what does not fit.
#include "nn/plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/stateless.h"
#include "nn/models/lenet.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/linear.h"
#include "tests/nn/net.h"
#include "tests/nn/support.h"
#include "tests/support/files.h"

namespace ringlet::nn {
namespace {

std::vector<std::string> names_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlannedParameter& planned : plan.parameters) names.push_back(planned.name);
  return names;
}

/// A step on a batch of `samples`, whose numbers do not matter.
Log run_step(Rig& rig, const Net& net, std::int64_t samples, Layout layout) {
  const Tensor x = test::random_tensor(*rig.device, net.sample.with_batch(samples), 3, layout);
  const Tensor labels = test::upload(*rig.device, {samples}, test::random_labels(samples, 4, 3));
  Log log;
  ReadyLog ready(log);
  rig.step(x, labels, {}, &ready);
  return log;
}

TEST(Plan, PutsParametersInTheOrderInWhichTheirGradientsAreFinal) {
  const auto model = make_lenet({}, LeNetStart::practitioner);
  const Plan plan = plan_training(*model, register_model(*model), {{8, 1, 28, 28}, Layout::nchw},
                                  softmax_cross_entropy);
  EXPECT_EQ(names_of(plan), (Log{"fc2.weight", "fc2.bias", "fc1.weight", "fc1.bias", "conv2.weight",
                                 "conv2.bias", "conv1.weight", "conv1.bias"}));
  EXPECT_EQ(plan.parameter_count, 129068);
}

class PlanTest : public ::testing::TestWithParam<std::tuple<Net, Layout>> {};
INSTANTIATE_TEST_SUITE_P(Nets, PlanTest,
                         ::testing::Combine(::testing::ValuesIn(test_nets()),
                                            ::testing::Values(Layout::nchw, Layout::lanes)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  name_of(std::get<1>(test.param));
                         });

TEST_P(PlanTest, TheReadyHooksFireInThePlansOrder) {
  const auto& [net, layout] = GetParam();
  Rig rig(make_sequential(net), {net.sample.with_batch(17), layout});
  Log expected;
  for (const std::string& name : names_of(rig.plan)) expected.push_back("ready " + name);
  EXPECT_EQ(expected.size(), rig.registry.parameters.size());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run_step(rig, net, 17, layout), expected);
}

TEST_P(PlanTest, RangesAreAlignedDisjointAndInOrder) {
  const auto& [net, layout] = GetParam();
  const auto model = make_sequential(net);
  const Registry registry = register_model(*model);
  const Plan plan =
      plan_training(*model, registry, {net.sample.with_batch(17), layout}, softmax_cross_entropy);
  std::int64_t end = 0, count = 0;
  for (const PlannedParameter& planned : plan.parameters) {
    EXPECT_EQ(planned.begin % Plan::kArenaAlignment, 0);
    EXPECT_GE(planned.begin, end);
    EXPECT_LT(planned.begin - end, Plan::kArenaAlignment);
    EXPECT_EQ(planned.end - planned.begin, planned.shape.count());
    EXPECT_EQ(planned.uses, 1);
    const Parameter& parameter = *registry.parameters.at(static_cast<std::size_t>(planned.id));
    EXPECT_EQ(parameter.name, planned.name);
    EXPECT_EQ(parameter.shape, planned.shape);
    end = planned.end;
    count += planned.shape.count();
  }
  EXPECT_GE(plan.elements, end);
  EXPECT_EQ(plan.elements % Plan::kArenaAlignment, 0);
  EXPECT_EQ(plan.parameter_count, count);
}

// A Rig's arena has the planned bytes, and some batch needs every one of them.
TEST_P(PlanTest, TheActivationsFitTheirArenaAlsoForSmallerBatches) {
  const auto& [net, layout] = GetParam();
  for (const std::int64_t n : {1, 16, 33, 96}) {
    Rig rig(make_sequential(net), {net.sample.with_batch(n), layout});
    for (std::int64_t samples = n; samples >= 0; --samples) {
      EXPECT_NO_THROW(run_step(rig, net, samples, layout)) << samples << " of " << n;
    }
    EXPECT_EQ(rig.activations.high_water(), rig.plan.activation_bytes);
    EXPECT_EQ(rig.activations.capacity(), rig.plan.activation_bytes);
  }
}

// Best fit makes no such promise: the plan has to look at every batch.
TEST_P(PlanTest, NoSmallerBatchNeedsMoreActivations) {
  const auto& [net, layout] = GetParam();
  const auto model = make_sequential(net);
  const Registry registry = register_model(*model);
  std::int64_t least = 0;
  for (std::int64_t n = 0; n <= 100; ++n) {
    const InputSpec input{net.sample.with_batch(n), layout};
    const Plan plan = plan_training(*model, registry, input, softmax_cross_entropy);
    EXPECT_GE(plan.activation_bytes, least) << n;
    least = plan.activation_bytes;
  }
}

TEST_P(PlanTest, AnEvaluationFitsItsArena) {
  const auto& [net, layout] = GetParam();
  const InputSpec input{net.sample.with_batch(33), layout};
  Rig rig(make_sequential(net), input);
  Arena arena(*rig.device, plan_evaluation(*rig.model, rig.registry, input, rig.loss));
  Tape tape(*rig.device, arena, rig.registry.parameters);
  for (const std::int64_t n : {33, 32, 1}) {
    const Tensor x = test::random_tensor(*rig.device, net.sample.with_batch(n), 3, layout);
    const Tensor labels = test::upload(*rig.device, {n}, test::random_labels(n, 4, 3));
    tape.begin({.training = false});
    const Variable output = rig.model->forward(tape, tape.constant(x));
    EXPECT_NO_THROW(rig.loss(output, tape.constant(labels))) << n;
  }
}

TEST_P(PlanTest, LeavesTheViewsAsTheyWere) {
  const auto& [net, layout] = GetParam();
  const InputSpec input{net.sample.with_batch(5), layout};
  Rig rig(make_sequential(net), input);
  const auto addresses = [&rig] {
    std::vector<void*> all;
    for (const Parameter* parameter : rig.registry.parameters) {
      all.push_back(parameter->value.data());
      all.push_back(parameter->gradient.data());
    }
    return all;
  };
  const auto before = addresses();
  plan_training(*rig.model, rig.registry, input, rig.loss);
  plan_evaluation(*rig.model, rig.registry, input, rig.loss);
  EXPECT_EQ(addresses(), before);
}

TEST(Plan, CountsUsesAndPutsUnusedParametersFirst) {
  auto graph = std::make_unique<Graph>();
  Parameter& twice = graph->add("twice", {1});
  graph->add("unused", {3});
  Parameter& dead = graph->add("dead", {1});
  graph->set([&](Tape& tape, const Variable&) {
    const Variable once = scale(tape.parameter(twice), 2);
    scale(tape.parameter(dead), 2);
    return add(once, tape.parameter(twice));
  });
  const Plan plan =
      plan_training(*graph, register_model(*graph), {{1}, Layout::nchw}, output_is_loss);
  EXPECT_EQ(names_of(plan), (Log{"unused", "dead", "twice"}));
  EXPECT_EQ(plan.parameters[0].uses, 0);
  EXPECT_EQ(plan.parameters[1].uses, 1);
  EXPECT_EQ(plan.parameters[2].uses, 2);
  EXPECT_EQ(plan.parameters[1].begin, 16);
  EXPECT_EQ(plan.elements, 48);
}

// cpu.md's nominal work of a sample: 13.3 MFLOP. Convolutions and linear layers alone come to
// 3 x 4,500,720 less the data gradient of conv1 (243,360), which nobody wants.
TEST(Plan, CountsTheFlopsOfLeNet) {
  const Net net = lenet_net(28);
  const auto model = make_sequential(net);
  const Plan plan = plan_training(*model, register_model(*model), {net.sample, Layout::nchw},
                                  softmax_cross_entropy);
  constexpr double kForward = 2.0 * (20 * 26 * 26 * 9 + 50 * 9 * 9 * 500 + 128 * 800 + 1280);
  constexpr double kBackward = 2 * kForward - 2.0 * 20 * 26 * 26 * 9;
  EXPECT_GE(plan.forward.flops, kForward);
  EXPECT_LT(plan.forward.flops, 1.01 * kForward);
  EXPECT_GE(plan.backward.flops, kBackward);
  EXPECT_LT(plan.backward.flops, 1.01 * kBackward);
  EXPECT_NEAR(plan.forward.flops + plan.backward.flops, 13.3e6, 0.05e6);
}

TEST(Plan, FlopsGrowWithTheBatch) {
  const Net net = lenet_net(28);
  const auto model = make_sequential(net);
  const Registry registry = register_model(*model);
  const auto flops = [&](std::int64_t n) {
    const Plan plan = plan_training(*model, registry, {net.sample.with_batch(n), Layout::nchw},
                                    softmax_cross_entropy);
    return plan.forward.flops + plan.backward.flops;
  };
  EXPECT_NEAR(flops(32) / flops(1), 32, 0.1);
}

/// The message of the error that planning `model` for `input` throws.
std::string error_of(Layer& model, const Shape& input) {
  try {
    plan_training(model, register_model(model), {input, Layout::nchw}, softmax_cross_entropy);
  } catch (const ContractError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Plan, NamesTheLayerThatDoesNotFitAndTheShapes) {
  const auto lenet = make_lenet({}, LeNetStart::practitioner);
  const std::string wrong_size = error_of(*lenet, {4, 1, 32, 32});
  EXPECT_NE(wrong_size.find("fc1"), std::string::npos) << wrong_size;
  EXPECT_NE(wrong_size.find("[128, 1250]"), std::string::npos) << wrong_size;
  const std::string wrong_channels = error_of(*lenet, {4, 3, 28, 28});
  EXPECT_NE(wrong_channels.find("conv1"), std::string::npos) << wrong_channels;
  EXPECT_NE(wrong_channels.find("[4, 3, 28, 28]"), std::string::npos) << wrong_channels;
  const std::string too_small = error_of(*lenet, {4, 1, 9, 9});
  EXPECT_NE(too_small.find("conv2"), std::string::npos) << too_small;

  Sequential unflattened;
  unflattened.add<Linear>("fc", 784, 10);
  const std::string rank = error_of(unflattened, {4, 1, 28, 28});
  EXPECT_NE(rank.find("fc"), std::string::npos) << rank;
}

TEST(Plan, AModelThatDidNotFitCanBePlannedForWhatFits) {
  const auto lenet = make_lenet({}, LeNetStart::practitioner);
  error_of(*lenet, {4, 1, 32, 32});
  for (const Parameter* parameter : register_model(*lenet).parameters) {
    EXPECT_TRUE(parameter->value.absent());
  }
  EXPECT_EQ(error_of(*lenet, {4, 1, 28, 28}), "no error");
}

/// y = 2 x with a slope that is learnt, without what a program may forget in a layer of its own.
enum class Forgets { nothing, memory, backward_memory, to_record, targets, the_slope, its_result };

class OwnLayer : public Layer {
 public:
  explicit OwnLayer(Forgets what) : what_(what) {}
  Variable forward(Tape& tape, const Variable& x) override {
    const Variable slope = tape.parameter(slope_);
    const Variable y = tape.make(x.shape(), x.layout());
    if (what_ == Forgets::memory) *y.value().f32() = 2 * *x.value().f32();
    if (what_ == Forgets::its_result) return {};
    if (what_ == Forgets::the_slope) {
      tape.record("twice", {x}, y, [=](Backward& backward) { backward.target(x); });
    } else if (what_ != Forgets::to_record) {
      tape.record("twice", {x, slope}, y, [=, what = what_](Backward& backward) {
        if (what == Forgets::targets) return;
        if (what == Forgets::backward_memory) *backward.gradient(y).f32() = 1;
        backward.target(x);
        backward.target(slope);
      });
    }
    return y;
  }
  void register_in(Registry& registry, const std::string& prefix) override {
    registry.add(slope_, prefix + "slope");
  }

 private:
  Forgets what_;
  Parameter slope_{{1}, Initializer::constant(2)};
};

TEST(Plan, NamesTheLayerOfOnesOwnThatForgetsSomething) {
  const auto error = [](Forgets what) {
    Sequential model;
    model.add<Linear>("fc1", 6, 5);
    model.add<OwnLayer>("mine", what);
    model.add<Linear>("fc2", 5, 3);
    return error_of(model, {4, 6});
  };
  using ringlet::testing::says;
  EXPECT_EQ(error(Forgets::nothing), "no error");
  EXPECT_TRUE(says(error(Forgets::memory), {"layer mine", "dry run", "no memory", "own_layer.cc"}));
  EXPECT_TRUE(
      says(error(Forgets::backward_memory), {"layer mine", "backward of twice", "no memory"}));
  EXPECT_TRUE(says(error(Forgets::to_record), {"layer mine", "no gradient", "Tape::record()"}));
  EXPECT_TRUE(says(error(Forgets::targets), {"layer mine", "twice", "input 1", "target()"}));
  EXPECT_TRUE(says(error(Forgets::the_slope), {"mine.slope", "not be learnt", "Tape::record()"}));
  EXPECT_TRUE(says(error(Forgets::its_result), {"empty"}));
}

/// A layer without parameters that records nothing.
class Prepares : public Layer {
 public:
  Variable forward(Tape& tape, const Variable& x) override {
    return tape.make(x.shape(), x.layout());
  }
};

TEST(Plan, LetsALayerRecordNothingBeforeWhatIsLearnt) {
  Sequential model;
  model.add<Prepares>("prepares");
  model.add<Linear>("fc", 6, 3);
  EXPECT_EQ(error_of(model, {4, 6}), "no error");
}

TEST(Plan, SaysWhatALossHasToBe) {
  Sequential model;
  model.add<Linear>("fc", 6, 3);
  const auto no_sum = [](const Variable& output, const Variable&) { return output; };
  const std::string message = ringlet::testing::message_of<ContractError>([&] {
    plan_training(model, register_model(model), {{4, 6}}, no_sum);
  });
  EXPECT_TRUE(ringlet::testing::says(message, {"the loss is f32 [4, 3]", "softmax_cross_entropy"}));
}

TEST(Plan, RefusesABatchThatNoMemoryHoldsAtOnce) {
  Sequential model;
  model.add<Linear>("fc", 6, 3);
  const InputSpec input{.shape = {std::int64_t{1} << 40, 6}, .memory = std::int64_t{1} << 30};
  for (const auto& plan : std::vector<std::function<void()>>{
           [&] { plan_training(model, register_model(model), input, softmax_cross_entropy); },
           [&] { plan_evaluation(model, register_model(model), input, softmax_cross_entropy); }}) {
    EXPECT_TRUE(ringlet::testing::says(ringlet::testing::message_of<OutOfMemoryError>(plan),
                                       {"1099511627776 samples", "1024 MiB", "smaller batch"}));
  }
}

}  // namespace
}  // namespace ringlet::nn
