// The units of a model, between which it may be cut, how stages of them are written, and what bad
// ones are told.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/ops/linear.h"
#include "nn/recorded_graph.h"
#include "nn/stages/stages.h"
#include "tests/nn/stage_models.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

using namespace stage_models;

std::string names_of(const Units& units) { return units.list({0, units.count()}); }

std::vector<Model> all_models() {
  std::vector<Model> all = models();
  all.push_back({"lenet_d2l",
                 [](const ModelInput& input) { return make_lenet(input, LeNetStart::textbook); }});
  all.push_back({"resnet34", make_resnet34, 32});
  all.push_back({"resnet18_cifar", make_resnet18_cifar, 32});
  all.push_back({"iresnet34", make_iresnet34});
  all.push_back({"iresnet50", make_iresnet50});
  all.push_back({"iresnet100", make_iresnet100});
  return all;
}

std::vector<std::string> names_in(const Registry& registry) {
  std::vector<std::string> names;
  for (const Parameter* parameter : registry.parameters) names.push_back(parameter->name);
  for (const StateBuffer* buffer : registry.buffers) names.push_back(buffer->name);
  return names;
}

class UnitsTest : public ::testing::TestWithParam<Model> {};
INSTANTIATE_TEST_SUITE_P(Models, UnitsTest, ::testing::ValuesIn(all_models()),
                         [](const auto& test) { return test.param.name; });

/// As many stages as there can be: [begin, end) of each. Mostly a unit each.
std::vector<Units::Range> smallest_of(const Units& units) {
  std::vector<Units::Range> ranges{{0, units.count()}};
  for (const int begin : units.begins()) {
    ranges.back().end = begin;
    ranges.push_back({begin, units.count()});
  }
  return ranges;
}

// In the order of registration, each under the name of its unit.
TEST_P(UnitsTest, HaveEachParameterAndBufferOnce) {
  const Case c{GetParam()};
  const auto model = c.model.make(c.input());
  const Registry whole = register_model(*model);
  const std::vector<std::string> names = names_in(whole);
  const Units units = units_of(*model, whole, c.spec(), false);
  ASSERT_GE(static_cast<int>(units.begins().size()), units.count() - 2);
  std::vector<std::string> parameters, buffers;
  for (const auto& [begin, end] : smallest_of(units)) {
    const Registry own = register_model(*stage_of(*model, units, begin, end));
    const std::string& unit = units[end - 1].name;  // nothing is learnt before it
    for (const std::string& name : names_in(own)) {
      EXPECT_EQ(name.rfind(unit + ".", 0), 0U) << name << " in " << unit;
    }
    for (const Parameter* parameter : own.parameters) parameters.push_back(parameter->name);
    for (const StateBuffer* buffer : own.buffers) buffers.push_back(buffer->name);
  }
  parameters.insert(parameters.end(), buffers.begin(), buffers.end());
  EXPECT_EQ(parameters, names);
}

/// "conv1 conv2d" of each operation.
Log operations_of(Layer& layer, const Shape& input) {
  Log log;
  const RecordedGraph graph = record_graph(layer, register_model(layer), input);
  for (const RecordedGraph::Step& step : graph.steps()) {
    log.push_back(step.layer + " " + step.operation);
  }
  return log;
}

TEST_P(UnitsTest, RunUnderTheNamesThatTheyHaveInTheWhole) {
  const Case c{GetParam()};
  const auto model = c.model.make(c.input());
  const Log whole = operations_of(*model, c.spec().shape);
  const Units units = units_of_case(c, *model, false);
  Log apart;
  for (const auto& [begin, end] : smallest_of(units)) {
    const auto stage = stage_of(*model, units, begin, end);
    for (const std::string& operation : operations_of(*stage, units[begin].input.shape)) {
      if (operation != " scale") apart.push_back(operation);  // behind a unit that is a view
    }
  }
  EXPECT_EQ(apart, whole);
}

TEST_P(UnitsTest, AreFoundByTheWordsOfEachStage) {
  const Case c{GetParam()};
  const Units units = units_of_case(c, *c.model.make(c.input()));
  for (const int begin : units.begins()) {
    const Stages cut = cut_before(units, {begin});
    std::string text;
    for (const StageCut& stage : cut) {
      std::string layers = stage.layers;
      if (const std::size_t dots = layers.find(" .. "); dots != std::string::npos) {
        layers.replace(dots, 4, "..");
      }
      text += (text.empty() ? "" : ",") + layers;
    }
    const Stages read = parse_stages(text, units);
    ASSERT_EQ(read.size(), 2U) << text;
    EXPECT_EQ(read[1].begin, begin) << text;
    EXPECT_EQ(in_words(read[1]), in_words(cut[1]));
  }
}

TEST(Units, AreTheLayersOfNestedSequentials) {
  EXPECT_EQ(names_of(units_of_model("resnet18")),
            "conv1, bn1, relu, maxpool, layer1.0, layer1.1, layer2.0, layer2.1, layer3.0, "
            "layer3.1, layer4.0, layer4.1, avgpool, flatten, fc");
  EXPECT_EQ(names_of(units_of_model("resnet20")),
            "conv1, bn1, relu, layer1.0 .. layer1.2, layer2.0 .. layer2.2, layer3.0 .. layer3.2, "
            "avgpool, flatten, fc");
  EXPECT_EQ(names_of(units_of_model("nested")),
            "encoder.stem.conv .. encoder.stem.pool, encoder.norm .. encoder.nothing, "
            "decoder.flatten, decoder.in_f32, decoder.head.fc .. decoder.head.drop, decoder.fc");
}

Log begins_of(const Case& c, bool fuse = true) {
  const Units units = units_of_case(c, *c.model.make(c.input()), fuse);
  Log names;
  for (const int begin : units.begins()) names.push_back(units[begin].name);
  return names;
}

TEST(Units, WithoutACutThroughWhatRunsAsOne) {
  const Model& lenet = model_called("lenet");
  EXPECT_EQ(begins_of({lenet}), (Log{"conv2", "flatten", "fc1", "fc2"}));
  EXPECT_EQ(begins_of({lenet, Layout::lanes}), (Log{"conv2", "flatten", "fc1", "fc2"}));
  EXPECT_EQ(begins_of({lenet, Layout::nhwc}), (Log{"conv2", "fc1", "fc2"}));  // with flatten
  EXPECT_EQ(begins_of({lenet}, false),
            (Log{"relu1", "pool1", "conv2", "relu2", "pool2", "flatten", "fc1", "relu3", "fc2"}));
  // Behind a flatten alone nothing is learnt.
  EXPECT_EQ(begins_of({model_called("mlp")}), (Log{"fc2", "fc3"}));
  EXPECT_EQ(begins_of({model_called("nested")}),
            (Log{"encoder.norm", "encoder.drop", "encoder.nothing", "decoder.flatten",
                 "decoder.in_f32", "decoder.head.fc", "decoder.head.drop", "decoder.fc"}));
}

TEST(Units, KnowWhatCrossesEachBoundary) {
  const Case c{model_called("lenet"), Layout::lanes, DType::bf16};
  const Units units = units_of_case(c, *c.model.make(c.input()));
  EXPECT_FALSE(units[0].input.wants_gradient);
  const Crossing& conv2 = units[3].input;
  EXPECT_EQ(conv2.shape, (Shape{kSamples, 20, 7, 7}));
  EXPECT_EQ(conv2.layout, Layout::lanes);
  EXPECT_EQ(conv2.dtype, DType::bf16);
  EXPECT_EQ(conv2.bytes, 32 * 20 * 7 * 7 * 2);  // two blocks of lanes
  EXPECT_TRUE(conv2.wants_gradient);
  const Units mlp = units_of_model("mlp");
  EXPECT_FALSE(mlp[1].input.wants_gradient);  // nothing is learnt by a flatten
  EXPECT_TRUE(mlp[3].input.wants_gradient);
}

TEST(Stages, AreCalledByFewNames) {
  const Units units = units_of_model("resnet18");
  const auto words = [&](const char* text, std::size_t stage) {
    return in_words(parse_stages(text, units).at(stage));
  };
  EXPECT_EQ(words("conv1..layer2,layer3..fc", 0), "stage 0 (conv1 .. layer2)");
  EXPECT_EQ(words("conv1..layer2,layer3..fc", 1), "stage 1 (layer3 .. fc)");
  EXPECT_EQ(words("conv1..layer2.0,layer2.1..fc", 0), "stage 0 (conv1 .. layer2.0)");
  EXPECT_EQ(words("conv1..layer2.0,layer2.1..fc", 1), "stage 1 (layer2.1 .. fc)");
  EXPECT_EQ(words("conv1..layer2,layer3,layer4..flatten,fc", 1), "stage 1 (layer3)");
  EXPECT_EQ(words("conv1..layer2,layer3,layer4..flatten,fc", 3), "stage 3 (fc)");
}

TEST(Stages, AreReadWithTheirDevices) {
  const Units units = units_of_model("resnet18");
  const Stages stages = parse_stages("conv1..layer2=cpu:0,layer3..fc=cuda:0-3", units);
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].begin, 0);
  EXPECT_EQ(stages[0].end, 8);
  EXPECT_EQ(stages[0].devices, "cpu:0");
  EXPECT_EQ(stages[1].index, 1);
  EXPECT_EQ(stages[1].begin, 8);
  EXPECT_EQ(stages[1].end, 15);
  EXPECT_EQ(stages[1].devices, "cuda:0-3");
  EXPECT_EQ(parse_stages("conv1..layer2,layer3..fc", units)[1].devices, "");
}

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const ContractError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kLenetUnits =
    "; the units are conv1, relu1, pool1, conv2, relu2, pool2, flatten, fc1, relu3, fc2";

TEST(Stages, ThatAreWrongAreNamedWithTheUnitsThatThereAre) {
  const Units units = units_of_model("lenet");
  const std::pair<const char*, const char*> kCases[] = {
      {"", "stage number 1 of '' is empty; write FIRST..LAST, with a comma between two stages"},
      {"conv1..pool2,,fc1..fc2",
       "stage number 2 of 'conv1..pool2,,fc1..fc2' is empty; write FIRST..LAST, with a comma "
       "between two stages"},
      {"conv1..fc2,",
       "stage number 2 of 'conv1..fc2,' is empty; write FIRST..LAST, with a comma between two "
       "stages"},
      {"=cpu:0",
       "stage number 1 of '=cpu:0' is empty; write FIRST..LAST, with a comma between two stages"},
      {"conv1..fc2=",
       "'conv1..fc2=' names no device behind its '='; write one, or leave the '=' out"},
      {"conv1..", "'conv1..' has a name on one side of its '..' alone; write FIRST..LAST"},
      {"..fc2", "'..fc2' has a name on one side of its '..' alone; write FIRST..LAST"},
      {"conv1..fc3", "there is no unit 'fc3'"},
      {"conv..fc2", "there is no unit 'conv'"},
      {"fc2..conv1", "'fc2..conv1' ends before it begins; write 'conv1..fc2'"},
      {"conv1..pool1,flatten..fc1",
       "no stage has conv2, relu2, pool2, relu3, fc2; each unit belongs to one stage"},
      {"conv2..fc2", "no stage has conv1, relu1, pool1; each unit belongs to one stage"},
      {"conv1..flatten,pool2..fc2",
       "'conv1..flatten' and 'pool2..fc2' both have pool2, flatten; each unit belongs to one "
       "stage"},
      {"conv1..pool2,conv1..pool2", "'conv1..pool2' is there twice; write each stage once"},
      {"fc1..fc2,conv1..flatten",
       "'fc1..fc2' stands before 'conv1..flatten', which runs first; write stages in the model's "
       "order"},
      {"conv1..flatten=cpu:0,fc1..fc2",
       "'conv1..flatten' has a device and 'fc1..fc2' has none; give each stage one, or none"},
      {"conv1,relu1..fc2",
       "a cut between conv1 and relu1 splits conv1, relu1, pool1, which run as one operation; cut "
       "behind pool1"},
      {"conv1..relu2,pool2..fc2",
       "a cut between relu2 and pool2 splits conv2, relu2, pool2, which run as one operation; cut "
       "before conv2 or behind pool2"},
      {"conv1,relu1,pool1,conv2,relu2,pool2",
       "6 stages of a model with 10 units, of which some have to stay together; ask for 5 at most"},
  };
  for (const auto& refused : kCases) {
    EXPECT_EQ(error_of([&] { parse_stages(refused.first, units); }),
              "stages: " + (refused.second + kLenetUnits))
        << refused.first;
  }
}

TEST(Stages, AreNotMoreThanUnits) {
  const Case c{model_called("lenet")};
  const auto model = c.model.make(c.input());
  const Units units = units_of_case(c, *model, false);
  EXPECT_NO_THROW(units.require_stages(10));
  EXPECT_EQ(error_of([&] { units.require_stages(11); }),
            "stages: 11 stages of a model with 10 units; ask for 10 at most" + kLenetUnits);
}

TEST(Stages, OfOtherUnitsThanThereAreAreRefused) {
  const Case c{model_called("lenet")};
  const auto model = c.model.make(c.input());
  const Units units = units_of_case(c, *model);
  for (const auto& range : {std::pair{3, 3}, {-1, 3}, {3, 11}, {3, 0}}) {
    EXPECT_EQ(error_of([&] { stage_of(*model, units, range.first, range.second); }),
              "stage_of: a stage has one unit at least, and those that there are");
  }
  EXPECT_EQ(error_of([&] { stage_of(*model, units, 4, 10); }).rfind("stages: a cut between", 0),
            0U);
  EXPECT_EQ(error_of([&] { stage_of(*model, units, 0, 5); }).rfind("stages: a cut between", 0), 0U);
  EXPECT_EQ(error_of([&] { stage_of(*make_mlp({}), units, 0, 3); }),
            "stage_of: the units are of another model");
  EXPECT_EQ(error_of([&] {
              cut_before(units, {6, 3});
            }),
            "stages: begin with units of the model, ascending");
}

TEST(Stages, OfAModelThatIsNoSequentialAreRefused) {
  struct Derived : Sequential {};
  Derived derived;
  derived.add<Linear>("fc1", 4, 4);
  derived.add<Linear>("fc2", 4, 4);
  const Units units = units_of(derived, register_model(derived), {{2, 4}, Layout::nchw});
  EXPECT_FALSE(units.is_sequence());
  EXPECT_EQ(names_of(units), "the model");
  EXPECT_TRUE(units.begins().empty());
  const std::string words =
      "stages: the model is one unit and cannot be cut; the model's root has to be an "
      "nn::Sequential, and no class that derives from it";
  EXPECT_EQ(error_of([&] { parse_stages("fc1,fc2", units); }), words);
  EXPECT_EQ(error_of([&] { units.require_stages(2); }), words);
  // One stage it can be.
  const auto stage = stage_of(derived, units, 0, 1);
  EXPECT_EQ(names_in(register_model(*stage)),
            (Log{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(operations_of(*stage, {2, 4}), operations_of(derived, {2, 4}));
}

TEST(Stages, WithLayersOfOneNameAreNotGuessed) {
  Sequential net;
  net.add<Linear>("fc1", 4, 4);
  net.add<Sigmoid>("act");
  net.add<Linear>("fc2", 4, 4);
  net.add<Sigmoid>("act");
  const Units units = units_of(net, register_model(net), {{2, 4}, Layout::nchw});
  EXPECT_EQ(error_of([&] { parse_stages("fc1..act,fc2..act", units); }),
            "stages: several layers of the model are named 'act'; give them different names; the "
            "units are fc1, act, fc2, act");
  EXPECT_EQ(cut_before(units, {2}).back().layers, "fc2 .. act");
  Sequential neighbours;
  neighbours.add<Linear>("fc", 4, 4);
  for (int i = 0; i < 2; ++i) neighbours.add<Sigmoid>("act");
  const Units two = units_of(neighbours, register_model(neighbours), {{2, 4}, Layout::nchw});
  EXPECT_EQ(error_of([&] { parse_stages("fc,act", two); }),
            "stages: several layers of the model are named 'act'; give them different names; the "
            "units are fc, act, act");
}

/// A linear layer with the weights of another, or of its own.
class TiedLinear : public Layer {
 public:
  explicit TiedLinear(Parameter* other = nullptr) : other_(other) {}
  Parameter& weight() { return own_; }
  Variable forward(Tape& tape, const Variable& x) override {
    return linear(x, tape.parameter(other_ != nullptr ? *other_ : own_), {});
  }
  void register_in(Registry& registry, const std::string& prefix) override {
    if (other_ == nullptr) registry.add(own_, prefix + "weight");
  }

 private:
  Parameter* other_;
  Parameter own_{{4, 4}, Initializer::constant(1)};
};

TEST(Stages, DoNotShareAParameter) {
  Sequential net;
  net.add<Linear>("in", 4, 4);
  auto& decoder = net.add<Sequential>("decoder");
  auto& first = decoder.add<TiedLinear>("0");
  decoder.add<Tanh>("1");
  decoder.add<TiedLinear>("2", &first.weight());
  net.add<Linear>("out", 4, 2);
  const Units units = units_of(net, register_model(net), {{2, 4}, Layout::nchw});
  EXPECT_EQ(units.begins(), (std::vector<int>{1, 4}));
  EXPECT_EQ(error_of([&] { parse_stages("in..decoder.1,decoder.2..out", units); }),
            "stages: a cut between decoder.1 and decoder.2 leaves the parameter decoder.0.weight "
            "to stages on both sides, and tied weights have to be in one stage; cut elsewhere; the "
            "units are in, decoder.0 .. decoder.2, out");
  EXPECT_EQ(in_words(parse_stages("in,decoder..out", units).back()), "stage 1 (decoder .. out)");
}

// A parameter is known by the unit that registers it, too, which may be another than uses it.
TEST(Stages, HaveTheParametersThatTheyUse) {
  Sequential net;
  auto& unused = net.add<Sequential>("a");
  auto owner = std::make_unique<Graph>();
  Parameter& weight = owner->add("weight", {4, 4}, 1);
  owner->set([](Tape&, const Variable& x) { return x; });
  struct Holder : Layer {
    explicit Holder(std::unique_ptr<Layer> held) : layer(std::move(held)) {}
    Variable forward(Tape& tape, const Variable& x) override { return layer->forward(tape, x); }
    void register_in(Registry& registry, const std::string& prefix) override {
      layer->register_in(registry, prefix);
    }
    std::unique_ptr<Layer> layer;
  };
  unused.add<Holder>("owner", std::move(owner));
  net.add<Tanh>("b");
  net.add<TiedLinear>("c", &weight);
  net.add<Tanh>("d");
  const Units units = units_of(net, register_model(net), {{2, 4}, Layout::nchw});
  EXPECT_EQ(units.begins(), (std::vector<int>{3}));
}

TEST(Stages, SayWhatTheWholeSaysOfALayerThatDoesNotFit) {
  const Case c{model_called("nested")};
  const auto model = c.model.make(c.input());
  const std::string whole = error_of([&] { operations_of(*model, {2, 3, 12, 12}); });
  EXPECT_EQ(whole.rfind("layer decoder: layer head: layer fc: ", 0), 0U) << whole;
  const Units units = units_of_case(c, *model);
  const int begin = units.find("decoder.head").begin;
  const auto stage = stage_of(*model, units, begin, units.count());
  EXPECT_EQ(error_of([&] { operations_of(*stage, {2, 6 * 6 * 6}); }), whole);
}

}  // namespace
}  // namespace ringlet::nn
