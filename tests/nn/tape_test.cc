// The tape on graphs small enough to differentiate in one's head.
#include "nn/tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "nn/batch.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/linear.h"
#include "tests/nn/support.h"
#include "tests/support/files.h"

namespace ringlet::nn {
namespace {

using Floats = std::vector<float>;

const InputSpec kAnyInput{{1}, Layout::nchw};

/// A graph of parameters "v" and "w", f32 [3], whose loss is a sum weighted by (1, 10, 100).
class TapeTest : public ::testing::Test {
 protected:
  using Function = std::function<Variable(Tape&, const Variable& v, const Variable& w)>;

  /// `function` makes the value [3] that is summed up.
  Rig& build(const Function& function) {
    return build_loss([this, function](Tape& tape, const Variable& v, const Variable& w) {
      return weighted_sum(function(tape, v, w), weights_);
    });
  }
  /// `function` makes the loss.
  Rig& build_loss(const Function& function) {
    auto graph = std::make_unique<Graph>();
    Parameter& v = graph->add("v", {3}, 2);
    Parameter& w = graph->add("w", {3}, 5);
    w_ = &w;
    graph->set([&v, &w, function, asks = asks_for_w_](Tape& tape, const Variable&) {
      return function(tape, tape.parameter(v), asks ? tape.parameter(w) : Variable());
    });
    rig_ = std::make_unique<Rig>(std::move(graph), kAnyInput, RigOptions{.loss = output_is_loss});
    log_.clear();  // of what the dry run wrote
    spoil_gradients();
    return *rig_;
  }
  /// What an earlier step might have left.
  void spoil_gradients() { fill(rig_->tape.stream(), NAN, rig_->parameters.gradients()); }

  float step(const BackwardOptions& options = {}) {
    return rig_->step(x_, labels_, options, &ready_);
  }

  std::unique_ptr<Device> device_ = open_device({});
  Tensor weights_ = test::upload<float>(*device_, {3}, {1, 10, 100});
  Tensor x_ = test::upload<float>(*device_, {1}, {7});
  Tensor labels_ = test::upload<std::int32_t>(*device_, {1}, {0});
  Log log_;
  ReadyLog ready_{log_};
  std::unique_ptr<Rig> rig_;
  Parameter* w_ = nullptr;
  bool asks_for_w_ = true;  // a layer that asks for a parameter has to use it
};

TEST_F(TapeTest, AddsTheGradientsOfAValueThatIsUsedTwice) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) {
    const Variable shared = add(v, w);
    return add(scale(shared, 2), scale(shared, 3));
  });
  EXPECT_FLOAT_EQ(step(), 111 * 5 * 7);
  EXPECT_EQ(rig.gradient("v"), (Floats{5, 50, 500}));
  EXPECT_EQ(rig.gradient("w"), (Floats{5, 50, 500}));
}

TEST_F(TapeTest, AddsTheGradientsOfOneInputTakenTwiceByOneOperation) {
  asks_for_w_ = false;
  Rig& rig = build([](Tape&, const Variable& v, const Variable&) { return add(v, v); });
  step();
  EXPECT_EQ(rig.gradient("v"), (Floats{2, 20, 200}));
  EXPECT_EQ(rig.tape.uses(rig.parameter("v")), 2);
}

TEST_F(TapeTest, ASharedParameterIsReadyOnceAndOnlyAfterItsLastUse) {
  Rig& rig = build([this](Tape& tape, const Variable& v, const Variable& w) {
    const Variable first = logged(scale(w, 2), "first", &log_);
    const Variable again = tape.parameter(*w_);
    const Variable second = logged(scale(again, 3), "second", &log_);
    return add(add(first, second), v);
  });
  step();
  EXPECT_EQ(rig.tape.uses(rig.parameter("w")), 2);
  EXPECT_EQ(log_, (Log{"ready v", "second", "first", "ready w"}));
  EXPECT_EQ(rig.gradient("w"), (Floats{5, 50, 500}));
}

TEST_F(TapeTest, AnInputHasItsGradientAfterBackward) {
  asks_for_w_ = false;
  Variable used, idle;
  const Tensor from_outside = test::upload<float>(*device_, {3}, {1, 2, 3});
  Rig& rig = build([&](Tape& tape, const Variable& v, const Variable&) {
    used = tape.input(from_outside);
    idle = tape.input(from_outside);
    return add(add(v, used), scale(used, 2));
  });
  EXPECT_FLOAT_EQ(step(), (2 + 3) + 10 * (2 + 6) + 100 * (2 + 9));
  EXPECT_EQ(test::read(rig.tape.gradient(used)), (Floats{3, 30, 300}));
  EXPECT_EQ(test::read(rig.tape.gradient(idle)), (Floats{0, 0, 0}));
  EXPECT_EQ(rig.gradient("v"), (Floats{1, 10, 100}));
  EXPECT_THROW(rig.tape.gradient(rig.tape.constant(x_)), ContractError);
}

TEST_F(TapeTest, BackwardBeginsAtAnyValue) {
  Variable sum;
  Rig& rig = build([&sum](Tape&, const Variable& v, const Variable& w) {
    sum = add(v, scale(w, 2));
    return sum;
  });
  rig.forward(x_, labels_);
  const Tensor dy = test::upload<float>(*device_, {3}, {7, 8, 9});
  rig.tape.backward(sum, dy);
  EXPECT_EQ(rig.gradient("v"), (Floats{7, 8, 9}));
  EXPECT_EQ(rig.gradient("w"), (Floats{14, 16, 18}));
  EXPECT_EQ(test::read(sum.value()), (Floats{12, 12, 12}));  // stays
  rig.forward(x_, labels_);
  EXPECT_THROW(rig.tape.backward(rig.tape.constant(dy), dy), ContractError);
  rig.forward(x_, labels_);
  EXPECT_THROW(rig.tape.backward(sum, test::upload<float>(*device_, {2}, {7, 8})), ContractError);
}

/// Linear layers with ReLU between them, and a tape of their own.
struct Stage {
  Stage(Device& device, const std::vector<std::string>& names, const InputSpec& input)
      : model(layers_of(names)),
        registry(register_model(*model)),
        plan(plan_training(*model, registry, input, softmax_cross_entropy)),
        parameters(device, registry, plan),
        arena(device, 1 << 20),
        tape(device, arena, registry.parameters) {
    parameters.initialize(1);
    tape.begin({});
  }
  static std::unique_ptr<Sequential> layers_of(const std::vector<std::string>& names) {
    auto model = std::make_unique<Sequential>();
    for (const std::string& name : names) {
      model->add<Linear>(name, 6, 6);
      model->add<ReLU>("relu of " + name);
    }
    return model;
  }
  std::unique_ptr<Sequential> model;
  Registry registry;
  Plan plan;
  Parameters parameters;
  Arena arena;
  Tape tape;
};

/// What crosses is a value, and back its gradient.
TEST_F(TapeTest, StagesOnTapesOfTheirOwnHaveTheBitsOfOne) {
  constexpr std::int64_t kSamples = 18, kWidth = 6;
  const Tensor seed = test::upload<float>(*device_, {1}, {1});
  const Tensor labels = test::upload(*device_, {kSamples}, test::random_labels(kSamples, 1, 6));
  for (const Layout layout : {Layout::nchw, Layout::lanes}) {
    const InputSpec input{{kSamples, kWidth}, layout};
    const Tensor x = test::random_tensor(*device_, input.shape, 2, layout);
    Stage whole(*device_, {"a", "b"}, input), first(*device_, {"a"}, input),
        second(*device_, {"b"}, input);
    const Variable loss = softmax_cross_entropy(
        whole.model->forward(whole.tape, whole.tape.constant(x)), whole.tape.constant(labels));
    whole.tape.backward(loss, seed);

    const Variable out = first.model->forward(first.tape, first.tape.constant(x));
    const Variable in = second.tape.input(out.value());
    const Variable loss_of_stages =
        softmax_cross_entropy(second.model->forward(second.tape, in), second.tape.constant(labels));
    second.tape.backward(loss_of_stages, seed);
    Tensor crossing(*device_, out.shape(), DType::f32, layout);
    copy(device_->compute(), second.tape.gradient(in), crossing);
    first.tape.backward(out, crossing);

    EXPECT_EQ(test::read(loss_of_stages.value()), test::read(loss.value()));
    for (Parameter* parameter : whole.registry.parameters) {
      const Stage& stage = parameter->name.starts_with("a") ? first : second;
      const bool is_weight = parameter->name.ends_with("weight");
      EXPECT_EQ(test::read(stage.registry.parameters[is_weight ? 0 : 1]->gradient),
                test::read(parameter->gradient))
          << parameter->name;
    }
  }
}

TEST_F(TapeTest, AnUnusedParameterGetsZerosAndIsReadyFirst) {
  asks_for_w_ = false;
  Rig& rig =
      build([this](Tape&, const Variable& v, const Variable&) { return logged(v, "used", &log_); });
  step();
  EXPECT_EQ(log_, (Log{"ready w", "used", "ready v"}));
  EXPECT_EQ(rig.gradient("w"), (Floats{0, 0, 0}));
  EXPECT_EQ(rig.tape.uses(rig.parameter("w")), 0);
  EXPECT_EQ(rig.tape.parameters_without_gradient(),
            (std::vector<const Parameter*>{&rig.parameter("w")}));
}

TEST_F(TapeTest, ABranchThatDoesNotReachTheLossGivesZeros) {
  Rig& rig = build([this](Tape&, const Variable& v, const Variable& w) {
    const Variable dead = logged(scale(w, 2), "dead", &log_);
    relu(dead);
    return logged(v, "alive", &log_);
  });
  step();
  EXPECT_EQ(log_, (Log{"alive", "ready v", "ready w"}));  // in the order of the walk
  EXPECT_EQ(rig.gradient("w"), (Floats{0, 0, 0}));
  EXPECT_EQ(rig.tape.uses(rig.parameter("w")), 1);
  EXPECT_EQ(rig.tape.parameters_without_gradient(),
            (std::vector<const Parameter*>{&rig.parameter("w")}));
}

TEST_F(TapeTest, ADeadUseBeforeOrAfterALiveOneStillCountsDown) {
  for (const bool dead_first : {true, false}) {
    Rig& rig = build([=, this](Tape&, const Variable& v, const Variable& w) {
      if (dead_first) relu(w);
      const Variable alive = logged(scale(w, 4), "alive", &log_);
      if (!dead_first) relu(w);
      return add(alive, v);
    });
    step();
    EXPECT_EQ(log_, (Log{"ready v", "alive", "ready w"})) << dead_first;
    EXPECT_EQ(rig.gradient("w"), (Floats{4, 40, 400}));
    EXPECT_EQ(rig.tape.uses(rig.parameter("w")), 2);
    EXPECT_TRUE(rig.tape.parameters_without_gradient().empty());
  }
}

TEST_F(TapeTest, ABranchRecordedBehindTheLossIsDead) {
  Rig& rig = build_loss([this](Tape&, const Variable& v, const Variable& w) {
    const Variable loss = weighted_sum(v, weights_);
    scale(loss, 3);
    relu(w);
    return loss;
  });
  step();
  EXPECT_EQ(log_, (Log{"ready w", "ready v"}));
  EXPECT_EQ(rig.gradient("v"), (Floats{1, 10, 100}));
  EXPECT_EQ(rig.gradient("w"), (Floats{0, 0, 0}));
}

TEST_F(TapeTest, ALossWithoutParametersGivesZeros) {
  Rig& rig = build_loss([](Tape& tape, const Variable& v, const Variable& w) {
    relu(v);
    relu(w);
    const Variable loss = tape.make({1}, Layout::nchw);
    fill(tape.stream(), 3, loss.value());
    tape.record("three", {}, loss, [](Backward&) {});
    return loss;
  });
  EXPECT_EQ(step(), 3);
  EXPECT_EQ(log_, (Log{"ready w", "ready v"}));
  EXPECT_EQ(rig.gradient("v"), (Floats{0, 0, 0}));
  EXPECT_EQ(rig.gradient("w"), (Floats{0, 0, 0}));
}

TEST_F(TapeTest, EveryStepStartsAnew) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  for (int i = 0; i < 3; ++i) {
    log_.clear();
    step();
    EXPECT_EQ(rig.gradient("v"), (Floats{1, 10, 100}));
    EXPECT_EQ(log_, (Log{"ready v", "ready w"}));
  }
}

TEST_F(TapeTest, AParameterThatIsUsedNoMoreLosesItsGradient) {
  bool use_w = true;
  Rig& rig = build([&use_w](Tape&, const Variable& v, const Variable& w) {
    return use_w ? add(v, w) : scale(v, 1);
  });
  step();
  EXPECT_EQ(rig.gradient("w"), (Floats{1, 10, 100}));
  use_w = false;
  step();
  EXPECT_EQ(rig.gradient("w"), (Floats{0, 0, 0}));
}

TEST_F(TapeTest, AccumulationOverwritesFirstAndAddsThen) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, scale(w, 2)); });
  for (int round = 0; round < 2; ++round) {
    log_.clear();
    step({.accumulate = false, .last = false});
    step({.accumulate = true, .last = false});
    EXPECT_TRUE(log_.empty());
    EXPECT_EQ(rig.gradient("w"), (Floats{4, 40, 400}));
    step({.accumulate = true, .last = true});
    EXPECT_EQ(log_, (Log{"ready v", "ready w"}));
    EXPECT_EQ(rig.gradient("v"), (Floats{3, 30, 300}));
    EXPECT_EQ(rig.gradient("w"), (Floats{6, 60, 600}));
  }
}

TEST_F(TapeTest, AccumulationKeepsWhatAnUnusedOrDeadParameterHolds) {
  bool use_w = true;
  Rig& rig = build([&use_w](Tape&, const Variable& v, const Variable& w) {
    relu(w);
    return use_w ? add(v, w) : scale(v, 1);
  });
  step({.accumulate = false, .last = false});
  use_w = false;
  step({.accumulate = true, .last = true});
  EXPECT_EQ(rig.gradient("w"), (Floats{1, 10, 100}));
  EXPECT_EQ(rig.gradient("v"), (Floats{2, 20, 200}));
}

TEST_F(TapeTest, ARankWithoutSamplesContributesZerosAndTellsOfEveryParameter) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  rig.tape.begin({});
  rig.tape.backward_of_nothing({}, &ready_);
  EXPECT_EQ(log_, (Log{"ready v", "ready w"}));
  EXPECT_EQ(rig.gradient("v"), (Floats{0, 0, 0}));
  EXPECT_EQ(rig.gradient("w"), (Floats{0, 0, 0}));
  EXPECT_EQ(rig.tape.parameters_without_gradient().size(), 2U);
}

TEST_F(TapeTest, NothingMayBeAnyPassOfAnAccumulation) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  rig.tape.begin({});
  rig.tape.backward_of_nothing({.accumulate = false, .last = false}, &ready_);
  step({.accumulate = true, .last = false});
  rig.tape.begin({});
  EXPECT_TRUE(log_.empty());
  rig.tape.backward_of_nothing({.accumulate = true, .last = true}, &ready_);
  EXPECT_EQ(rig.gradient("v"), (Floats{1, 10, 100}));
  EXPECT_EQ(log_.size(), 2U);
}

TEST_F(TapeTest, TheSeedScalesTheGradientAndNotTheLoss) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  test::write<float>(rig.seed, {0.25F});
  EXPECT_EQ(step(), 7 * 111);
  EXPECT_EQ(rig.gradient("v"), (Floats{0.25F, 2.5F, 25}));
}

// A closure may work in the memory of its output's gradient; the caller's seed is not that memory.
TEST_F(TapeTest, TheSeedIsNotOverwritten) {
  auto graph = std::make_unique<Graph>();
  Parameter& weight = graph->add("weight", {1, 1}, -1);
  graph->set([&weight](Tape& tape, const Variable& x) {
    return linear(x, tape.parameter(weight), {}, Activation::relu);
  });
  Rig rig(std::move(graph), {{1, 1}, Layout::nchw}, {.loss = output_is_loss});
  EXPECT_EQ(rig.step(test::upload<float>(*device_, {1, 1}, {3})), 0);
  EXPECT_EQ(rig.gradient("weight"), Floats{0});
  EXPECT_EQ(test::read(rig.seed.view()), Floats{1});
}

TEST_F(TapeTest, TheLossIsReadableAfterBackward) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) {
    Variable y = add(v, w);
    for (int i = 0; i < 10; ++i) y = scale(y, -1);
    return y;
  });
  const Variable loss = rig.forward(x_, labels_);
  EXPECT_EQ(*loss.value().f32(), 777);
  rig.tape.backward(loss, rig.seed);
  EXPECT_EQ(*loss.value().f32(), 777);
}

TEST_F(TapeTest, AStepGoesBackwardOnce) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  const Variable loss = rig.forward(x_, labels_);
  rig.tape.backward(loss, rig.seed);
  EXPECT_THROW(rig.tape.backward(loss, rig.seed), ContractError);
  EXPECT_NO_THROW(step());
}

TEST_F(TapeTest, EvaluationRecordsNothing) {
  Rig& rig = build([this](Tape&, const Variable& v, const Variable& w) {
    return add(logged(v, "recorded", &log_), w);
  });
  const Variable loss = rig.forward(x_, labels_, {.training = false});
  EXPECT_EQ(*loss.value().f32(), 777);
  EXPECT_EQ(rig.tape.uses(rig.parameter("v")), 0);
  rig.tape.backward(loss, rig.seed);
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(rig.gradient("v"), (Floats{0, 0, 0}));
}

TEST(Batch, HasOneTensorOfAName) {
  Batch batch;
  batch.add("a", {});
  batch.add("b", {});
  EXPECT_THROW(batch.add("a", {}), ContractError);
}

TEST_F(TapeTest, ConstantsWantNoGradient) {
  asks_for_w_ = false;
  bool constant_wants = true, parameter_wants = false;
  std::string refusal;
  Rig& rig = build_loss([&, this](Tape& tape, const Variable& v, const Variable&) {
    const Variable three = tape.constant(weights_);
    const Variable unrecorded = scale(three, 2);
    const Variable y = tape.make({1}, Layout::nchw);
    fill(tape.stream(), 0, y.value());
    tape.record("question", {v, three, unrecorded}, y,
                [=, a = &constant_wants, b = &parameter_wants, c = &refusal](Backward& backward) {
                  *a = backward.wants(three) || backward.wants(unrecorded) || backward.wants({});
                  *b = backward.wants(v);
                  const bool dry = backward.stream().device().id().kind == DeviceKind::meta;
                  if (dry) (void)backward.target(v);  // or the dry run would name it
                  try {
                    (void)backward.target(three);
                  } catch (const ContractError& error) {
                    *c = error.what();
                  }
                });
    return y;
  });
  constant_wants = true, parameter_wants = false, refusal = "";  // after the dry run
  step();
  EXPECT_FALSE(constant_wants);
  EXPECT_TRUE(parameter_wants);
  EXPECT_NE(refusal.find("ask Backward::wants() first"), std::string::npos) << refusal;
  EXPECT_EQ(rig.gradient("v"), (Floats{0, 0, 0}));  // the closure has written nothing
}

TEST_F(TapeTest, AReshapedVariableSharesValueAndGradient) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) {
    const Variable y = add(v, w);
    const Variable row = scale(y.reshaped({1, 3}), 2), column = scale(y.reshaped({3, 1}), 5);
    return add(add(row.reshaped({3}), column.reshaped({3})), y);
  });
  EXPECT_EQ(step(), 8 * 777);
  EXPECT_EQ(rig.gradient("v"), (Floats{8, 80, 800}));
}

TEST_F(TapeTest, AReshapeMustFit) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  rig.tape.begin({});
  const Variable v = rig.tape.parameter(rig.parameter("v"));
  EXPECT_EQ(v.reshaped({3, 1}).value().data(), v.value().data());
  EXPECT_THROW((void)v.reshaped({4}).value(), ContractError);
}

TEST_F(TapeTest, TheInspectorSeesEveryOutputWithItsLayer) {
  const std::string name = "layer1";
  Rig& rig = build([&name](Tape& tape, const Variable& v, const Variable& w) {
    const Tape::Scope scope(tape, name);
    return relu(add(v, w));
  });
  for (const bool training : {true, false}) {
    rig.tape.set_inspector([this](const char* layer, const char* operation, const View& value) {
      log_.push_back(std::string(layer) + "/" + operation + "/" + std::to_string(*value.f32()));
    });
    rig.forward(x_, labels_, {.training = training});
    EXPECT_EQ(log_,
              (Log{"layer1/add/7.000000", "layer1/relu/7.000000", "/weighted_sum/777.000000"}));
    log_.clear();
    rig.tape.set_inspector({});
    rig.forward(x_, labels_);
    EXPECT_TRUE(log_.empty());
  }
}

TEST_F(TapeTest, AStepThatThrewLeavesNothingBehind) {
  bool fail_forward = false, fail_backward = false;
  Rig& rig = build([&](Tape& tape, const Variable& v, const Variable& w) {
    const Variable y = add(v, w);
    tape.keep({3}, Layout::nchw);
    if (fail_forward) throw std::runtime_error("forward");
    const Variable z = tape.make({3}, Layout::nchw);
    copy(tape.stream(), y.value(), z.value());
    tape.record("fragile", {y}, z, [=, fail = &fail_backward](Backward& backward) {
      if (*fail) throw std::runtime_error("backward");
      const auto [dy, beta] = backward.target(y);
      scale(backward.stream(), 1, backward.gradient(z), beta, dy);
    });
    return z;
  });
  for (bool* fail : {&fail_forward, &fail_backward}) {
    *fail = true;
    EXPECT_THROW(step(), std::runtime_error);
    *fail = false;
    log_.clear();
    EXPECT_EQ(step(), 777);
    EXPECT_EQ(rig.gradient("w"), (Floats{1, 10, 100}));
    EXPECT_EQ(log_, (Log{"ready v", "ready w"}));
  }
}

// The dry run has no memory to see it in.
TEST_F(TapeTest, NamesTheLayerThatAsksForATargetAndDoesNotWriteIt) {
  const std::string layer = "mine";
  bool writes = false;
  Rig& rig = build([&](Tape& tape, const Variable& v, const Variable& w) {
    const Tape::Scope scope(tape, layer);
    const Variable y = tape.make({3}, Layout::nchw);
    fill(tape.stream(), 1, y.value());
    tape.record("forgetful", {v, w}, y, [=, writes = &writes](Backward& backward) {
      const auto [dv, beta_v] = backward.target(v);
      const auto [dw, beta_w] = backward.target(w);
      scale(backward.stream(), 1, backward.gradient(y), beta_v, dv);
      if (*writes) fill(backward.stream(), 0, dw);
    });
    return y;
  });
  const auto message = ringlet::testing::message_of<ContractError>([&] { step(); });
  EXPECT_TRUE(
      ringlet::testing::says(message, {"layer mine", "forgetful", "gradient [3]", "zeros too"}));
  writes = true;
  step();
  EXPECT_EQ(rig.gradient("w"), (Floats{0, 0, 0}));
}

TEST_F(TapeTest, RefusesEmptyViewsAndVariables) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  rig.tape.begin({});
  const auto refuses = [](std::initializer_list<std::string> words, const auto& call) {
    EXPECT_TRUE(ringlet::testing::says(ringlet::testing::message_of<ContractError>(call), words));
  };
  refuses({"Tape::constant", "empty"}, [&] { rig.tape.constant({}); });
  EXPECT_NO_THROW(rig.tape.constant({nullptr, {0, 4}}));  // a batch without samples
  refuses({"variable is empty"}, [] { relu({}); });
  refuses({"variable is empty"}, [&] { (void)rig.tape.wants_gradient({}); });
  refuses({"variable is empty"}, [&] { rig.tape.backward({}, rig.seed); });
  const Variable loss = rig.forward(x_, labels_);
  refuses({"seed", "empty"}, [&] { rig.tape.backward(loss, {}); });
  refuses({"variable is empty"}, [&] { (void)Backward(rig.tape, rig.tape.stream()).target({}); });
}

TEST_F(TapeTest, RefusesVariablesOfAnotherTapeAndOfAStepThatIsOver) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  const Variable old = rig.forward(x_, labels_);
  Tape other(*rig.device, rig.activations, rig.registry.parameters);
  other.begin({});
  const auto refuses = [](const auto& call) {
    EXPECT_TRUE(ringlet::testing::says(ringlet::testing::message_of<ContractError>(call),
                                       {"another tape", "over"}));
  };
  refuses([&] { (void)other.wants_gradient(old); });
  refuses([&] { other.record("mine", {old}, other.constant(weights_), [](Backward&) {}); });
  rig.tape.begin({});
  refuses([&] { (void)old.value(); });
}

TEST_F(TapeTest, AParameterOfAnotherModelIsRefused) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  rig.tape.begin({});
  Parameter stranger({3}, Initializer::zeros());
  EXPECT_THROW(rig.tape.parameter(stranger), ContractError);
  stranger.id = 1;
  EXPECT_THROW(rig.tape.parameter(stranger), ContractError);
}

TEST_F(TapeTest, ManyClosuresOfManySizesFitTheirMemory) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) {
    Variable y = v;
    for (int i = 0; i < 600; ++i) y = i % 2 == 0 ? scale(y, -1) : add(y, w);  // several chunks
    return y;
  });
  for (int i = 0; i < 2; ++i) {
    step();
    EXPECT_EQ(rig.gradient("v"), (Floats{1, 10, 100}));
    EXPECT_EQ(rig.gradient("w"), (Floats{0, 0, 0}));
    EXPECT_EQ(rig.tape.uses(rig.parameter("w")), 300);
  }
}

// Peak memory: 20 values, the loss and its gradient, and the gradients of a step's output and
// input. Behind backward all is free but the loss, which lies behind the values.
TEST_F(TapeTest, BackwardGivesMemoryBack) {
  auto graph = std::make_unique<Graph>();
  Parameter& parameter = graph->add("parameter", {1024});
  const Tensor weights = test::random_tensor(*device_, {1024}, 1);
  graph->set([&](Tape& tape, const Variable&) {
    Variable y = tape.parameter(parameter);
    for (int i = 0; i < 10; ++i) {
      tape.keep({1024}, Layout::nchw);  // belongs to the step that follows
      y = scale(y, 1);
    }
    return weighted_sum(y, weights);
  });
  Rig rig(std::move(graph), kAnyInput, {.loss = output_is_loss});
  EXPECT_EQ(rig.plan.activation_bytes, (20 + 2) * 4096 + 2 * 256);
  const Variable loss = rig.forward(x_, labels_);
  EXPECT_THROW(rig.activations.allocate({4096}), OutOfMemoryError);
  rig.tape.backward(loss, rig.seed);
  EXPECT_NO_THROW(rig.activations.allocate({20 * 1024}));
}

TEST_F(TapeTest, TheLossIsOneElement) {
  Rig& rig = build([](Tape&, const Variable& v, const Variable& w) { return add(v, w); });
  rig.tape.begin({});
  const Variable v = rig.tape.parameter(rig.parameter("v"));
  EXPECT_THROW(rig.tape.backward(scale(v, 1), rig.seed), ContractError);
  EXPECT_THROW(rig.tape.backward(weighted_sum(v, weights_), weights_), ContractError);
}

}  // namespace
}  // namespace ringlet::nn
