// Parameters and buffers in their arenas, and how models start.
#include "nn/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/sgd.h"
#include "nn/layers/linear.h"
#include "nn/layers/stateless.h"
#include "nn/models/lenet.h"
#include "nn/models/resnet.h"
#include "nn/ops/elementwise.h"
#include "tests/nn/net.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

/// Which elements of an arena belong to no parameter.
std::vector<bool> gaps_of(const Plan& plan) {
  std::vector<bool> gap(static_cast<std::size_t>(plan.elements), true);
  for (const PlannedParameter& planned : plan.parameters) {
    std::fill(gap.begin() + planned.begin, gap.begin() + planned.end, false);
  }
  return gap;
}

const Net kVaried = test_nets().back();  // has parameters of 3, 9, 27... elements

Rig make_rig(const Net& net, const RigOptions& options = {}) {
  return Rig(make_sequential(net), {net.sample.with_batch(17), Layout::lanes}, options);
}

void run_step(Rig& rig, const Net& net) {
  rig.step(test::random_tensor(*rig.device, net.sample.with_batch(17), 3, Layout::lanes),
           test::upload(*rig.device, {17}, test::random_labels(17, 4, 3)));
}

TEST(Parameters, AreViewsIntoTheArenas) {
  const Rig rig = make_rig(kVaried);
  EXPECT_EQ(rig.parameters.values().count(), rig.plan.elements);
  EXPECT_EQ(rig.parameters.gradients().count(), rig.plan.elements + Parameters::kStatistics);
  for (const PlannedParameter& planned : rig.plan.parameters) {
    const Parameter& parameter = rig.parameter(planned.name);
    EXPECT_EQ(parameter.value.shape(), planned.shape);
    EXPECT_EQ(parameter.value.f32(), rig.parameters.values().f32() + planned.begin);
    EXPECT_EQ(parameter.gradient.shape(), planned.shape);
    EXPECT_EQ(parameter.gradient.f32(), rig.parameters.gradients().f32() + planned.begin);
  }
  EXPECT_EQ(rig.parameters.statistics().f32(),
            rig.parameters.gradients().f32() + rig.plan.elements);
  EXPECT_EQ(rig.parameters.statistics().count(), Parameters::kStatistics);
}

TEST(Parameters, GapsAndStatisticsStayZeroThroughTraining) {
  Rig rig = make_rig(kVaried);
  const std::vector<bool> gap = gaps_of(rig.plan);
  ASSERT_GT(std::count(gap.begin(), gap.end(), true), 0);
  const Tensor rates = test::upload<float>(*rig.device, {2}, {0.1F, 0.9F});
  const Tensor velocity =
      test::upload(*rig.device, {rig.plan.elements}, std::vector<float>(gap.size(), 0));
  const auto before = test::read(rig.parameters.values());
  for (int step = 0; step < 3; ++step) {
    run_step(rig, kVaried);
    sgd_update(rig.tape.stream(), {.weight_decay = 0.01F, .nesterov = true}, rates,
               rig.parameters.values(), rig.parameters.gradients().slice(0, rig.plan.elements),
               velocity);
  }
  const auto values = test::read(rig.parameters.values());
  const auto gradients = test::read(rig.parameters.gradients());
  EXPECT_NE(values, before);
  for (std::size_t i = 0; i < gap.size(); ++i) {
    if (!gap[i]) continue;
    EXPECT_EQ(values[i], 0) << i;
    EXPECT_EQ(gradients[i], 0) << i;
  }
  EXPECT_EQ(test::read(rig.parameters.statistics()),
            std::vector<float>(Parameters::kStatistics, 0));
}

TEST(Parameters, StartAsAPureFunctionOfTheSeed) {
  const Rig one = make_rig(kVaried, {.seed = 7}), same = make_rig(kVaried, {.seed = 7}),
            other = make_rig(kVaried, {.seed = 8});
  EXPECT_TRUE(test::same_bytes(one.parameters.values(), same.parameters.values()));
  for (const Parameter* parameter : one.registry.parameters) {
    EXPECT_NE(test::read(parameter->value), test::read(other.parameter(parameter->name).value))
        << parameter->name;
  }
}

TEST(Parameters, InitializeStartsAnew) {
  Rig rig = make_rig(kVaried, {.seed = 7});
  const auto start = test::read(rig.parameters.values());
  fill(rig.tape.stream(), 3, rig.parameter("conv1.weight").value);
  rig.parameters.initialize(7);
  EXPECT_EQ(test::read(rig.parameters.values()), start);
}

TEST(Parameters, TheTextbooksLeNetStartsFromSmallNormalsAndZeroBiases) {
  const Rig rig(make_lenet({}, LeNetStart::textbook), {{1, 1, 28, 28}, Layout::nchw});
  for (const Parameter* parameter : rig.registry.parameters) {
    const auto values = test::read(parameter->value);
    double sum = 0, squares = 0;
    for (const float value : values) sum += value, squares += static_cast<double>(value) * value;
    const auto count = static_cast<double>(values.size());
    if (parameter->name.ends_with(".bias")) {
      EXPECT_EQ(squares, 0) << parameter->name;
    } else {
      EXPECT_NEAR(sum / count, 0, 5 * 0.01 / std::sqrt(count)) << parameter->name;
      EXPECT_NEAR(squares / count, 1e-4, 5e-4 * std::sqrt(2 / count)) << parameter->name;
    }
  }
}

TEST(Parameters, LeNetStartsWithKaimingsVariance) {
  const Rig rig(make_lenet({}, LeNetStart::practitioner), {{1, 1, 28, 28}, Layout::nchw});
  const std::pair<const char*, double> fan_in[] = {
      {"conv1.weight", 9}, {"conv2.weight", 500}, {"fc1.weight", 800}, {"fc2.weight", 128}};
  for (const auto& [name, inputs] : fan_in) {
    double squares = 0;
    const auto values = test::read(rig.parameter(name).value);
    for (const float value : values) squares += static_cast<double>(value) * value;
    const auto count = static_cast<double>(values.size());
    EXPECT_NEAR(squares / count * inputs / 2, 1, 5 * std::sqrt(2 / count)) << name;
  }
}

TEST(Parameters, ResNetsStartWithKaimingsVarianceOfWhatAConvolutionGives) {
  const Rig rig(make_resnet20({.channels = 3, .height = 32, .width = 32, .outputs = 10}),
                {{1, 3, 32, 32}, Layout::nchw});
  const std::pair<const char*, double> fan_out[] = {{"conv1.weight", 16 * 9},
                                                    {"layer2.0.conv1.weight", 32 * 9},
                                                    {"layer2.0.downsample.0.weight", 32},
                                                    {"layer3.2.conv2.weight", 64 * 9}};
  for (const auto& [name, outputs] : fan_out) {
    double squares = 0;
    const auto values = test::read(rig.parameter(name).value);
    for (const float value : values) squares += static_cast<double>(value) * value;
    const auto count = static_cast<double>(values.size());
    EXPECT_NEAR(squares / count * outputs / 2, 1, 5 * std::sqrt(2 / count)) << name;
  }
}

TEST(Parameters, GradientsGoToTheArenaInUse) {
  Rig rig = make_rig(kVaried, {.gradient_arenas = 3});
  EXPECT_EQ(rig.parameters.gradient_arenas(), 3);
  for (int arena = 0; arena < 3; ++arena) {
    fill(rig.tape.stream(), -1, rig.parameters.gradients(arena));
  }
  const auto untouched = test::read(rig.parameters.gradients(2));
  rig.parameters.use_gradient_arena(1);
  run_step(rig, kVaried);
  EXPECT_EQ(test::read(rig.parameters.gradients(0)), untouched);
  EXPECT_EQ(test::read(rig.parameters.gradients(2)), untouched);
  const auto in_one = test::read(rig.parameters.gradients(1));
  EXPECT_NE(in_one, untouched);
  rig.parameters.use_gradient_arena(0);
  run_step(rig, kVaried);
  EXPECT_EQ(test::read(rig.parameters.gradients(0)), in_one);
}

/// Counts in a buffer how often it ran in training.
std::unique_ptr<Graph> counting_graph() {
  auto graph = std::make_unique<Graph>();
  Parameter& weight = graph->add("weight", {3}, 1);
  StateBuffer& count = graph->add_buffer("count", {2}, 5);
  graph->add_buffer("variance", {3}, 1);
  graph->set([&weight, &count](Tape& tape, const Variable& x) {
    if (tape.context().training) {
      scale(tape.stream(), 1, tape.constant(count.value).value(), 1, count.value);
    }
    return weighted_sum(tape.parameter(weight), x.value());
  });
  return graph;
}

TEST(Buffers, AreKeptApartAndStartAsTheySay) {
  Rig rig(counting_graph(), {{3}, Layout::nchw}, {.loss = output_is_loss});
  ASSERT_EQ(rig.registry.buffers.size(), 2U);
  const StateBuffer &count = *rig.registry.buffers[0], &variance = *rig.registry.buffers[1];
  EXPECT_EQ(count.name, "count");
  EXPECT_EQ(count.value.f32(), rig.parameters.buffers().f32());
  EXPECT_EQ(variance.value.f32(), rig.parameters.buffers().f32() + 2);
  EXPECT_EQ(rig.parameters.buffers().count(), 5);
  EXPECT_EQ(rig.plan.parameter_count, 3);
  rig.step(test::upload<float>(*rig.device, {3}, {1, 2, 3}));
  EXPECT_EQ(test::read(rig.parameters.buffers()), (std::vector<float>{10, 10, 1, 1, 1}));
  EXPECT_EQ(rig.gradient("weight"), (std::vector<float>{1, 2, 3}));
  rig.parameters.initialize(1);
  EXPECT_EQ(test::read(rig.parameters.buffers()), (std::vector<float>{5, 5, 1, 1, 1}));
}

TEST(Buffers, HaveDifferentNames) {
  Registry registry;
  StateBuffer one({3}), other({3});
  registry.add(one, "k.seen");
  EXPECT_THROW(registry.add(other, "k.seen"), ContractError);
  EXPECT_THROW(registry.add(one, "k.more"), ContractError);
  EXPECT_NO_THROW(registry.add(other, "k.more"));
}

TEST(Buffers, HoldTheirStartAlsoWhereParametersComeFromAFile) {
  const auto device = open_device({});
  const auto graph = counting_graph();
  const Registry registry = register_model(*graph);
  const Plan plan = plan_training(*graph, registry, {{3}, Layout::nchw}, output_is_loss);
  const Parameters parameters(*device, registry, plan);  // initialize() is not called
  EXPECT_EQ(test::read(parameters.buffers()), (std::vector<float>{5, 5, 1, 1, 1}));
}

TEST(Buffers, ADryRunGivesTheirViewsBack) {
  Rig rig(counting_graph(), {{3}, Layout::nchw}, {.loss = output_is_loss});
  plan_training(*rig.model, rig.registry, {{3}, Layout::nchw}, output_is_loss);
  EXPECT_EQ(rig.registry.buffers[0]->value.f32(), rig.parameters.buffers().f32());
}

TEST(Registry, HasPyTorchsNamesInTheOrderOfTheLayers) {
  const auto model = make_lenet({}, LeNetStart::practitioner);
  Log names;
  for (const Parameter* parameter : register_model(*model).parameters) {
    names.push_back(parameter->name + parameter->shape.to_string());
  }
  EXPECT_EQ(names, (Log{"conv1.weight[20, 1, 3, 3]", "conv1.bias[20]", "conv2.weight[50, 20, 5, 5]",
                        "conv2.bias[50]", "fc1.weight[128, 800]", "fc1.bias[128]",
                        "fc2.weight[10, 128]", "fc2.bias[10]"}));
}

TEST(Registry, PrefixesTheNamesOfNestedLayers) {
  Sequential outer;
  auto& inner = outer.add<Sequential>("head");
  inner.add<Linear>("fc", 2, 3);
  EXPECT_EQ(register_model(outer).parameters.at(0)->name, "head.fc.weight");
}

TEST(Registry, RefusesANameGivenTwice) {
  Sequential model;
  model.add<Linear>("fc", 2, 2);
  model.add<Linear>("fc", 2, 2);
  EXPECT_THROW(register_model(model), ContractError);
}

TEST(Registry, RefusesAParameterUnderTwoNames) {
  Parameter parameter({1}, Initializer::zeros());
  Registry registry;
  registry.add(parameter, "a");
  EXPECT_THROW(registry.add(parameter, "b"), ContractError);
}

TEST(Model, LeNetSaysWhenImagesAreTooSmall) {
  EXPECT_NO_THROW(make_lenet({.height = 14, .width = 14}, LeNetStart::practitioner));
  EXPECT_THROW(make_lenet({.height = 13, .width = 14}, LeNetStart::practitioner), ContractError);
  EXPECT_THROW(make_lenet({.height = 28, .width = 1}, LeNetStart::practitioner), ContractError);
}

}  // namespace
}  // namespace ringlet::nn
