// A model in stages computes the bits of the model in one: loss, output, gradients and running
// statistics, for every cut that is offered.
#include "nn/stages/stages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nn/cast.h"
#include "tests/nn/net.h"
#include "tests/nn/stage_models.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

using namespace stage_models;

const StepContext kContext{.seed = 3, .epoch = 2, .first_sample = 5};

using Bytes = std::vector<std::byte>;
Bytes bytes_of(const ConstView& view) {
  Bytes bytes(static_cast<std::size_t>(view.bytes()));
  if (!bytes.empty()) std::memcpy(bytes.data(), view.data(), bytes.size());
  return bytes;
}

/// What a step leaves, by name.
using Numbers = std::map<std::string, Bytes>;

void take(Numbers& numbers, Registry& registry, Parameters& parameters, Stream& stream) {
  for (const Parameter* parameter : registry.parameters) {
    numbers["gradient " + parameter->name] = bytes_of(parameter->gradient);
    numbers["value " + parameter->name] = bytes_of(parameter->value);
  }
  for (const RunningStatistics* running : registry.running) {
    numbers["update " + running->mean.name] = bytes_of(running->update);
  }
  parameters.commit_running_statistics(stream);
  for (const StateBuffer* buffer : registry.buffers) {
    numbers["buffer " + buffer->name] = bytes_of(buffer->value);
  }
  for (const StateCounter* counter : registry.counters) {
    numbers["counter " + counter->name] = bytes_of(counter->value);
  }
}

Variable softmax_in_f32(const Variable& output, const Variable& targets) {
  return softmax_cross_entropy(cast(output, DType::f32), targets);
}

/// The loss that notes the model's output and itself.
LossFunction noted_loss(Numbers& numbers) {
  return [&numbers](const Variable& output, const Variable& targets) {
    const Variable loss = softmax_in_f32(output, targets);
    if (output.tape().device().id().kind == DeviceKind::meta) return loss;
    numbers["output"] = bytes_of(output.value());
    numbers["loss"] = bytes_of(loss.value());
    return loss;
  };
}

struct BatchOnDevice {
  BatchOnDevice(Device& device, const InputSpec& input)
      : x(test::random_tensor(device, input.shape, 3, input.layout)),
        labels(test::upload(device, {kSamples}, test::random_labels(kSamples, 4, kClasses))) {}
  Tensor x, labels;
};

Numbers run_whole(const Case& c) {
  Numbers numbers;
  Rig rig(c.model.make(c.input()), c.spec(), {.loss = noted_loss(numbers)});
  const BatchOnDevice batch(*rig.device, c.spec());
  rig.tape.backward(rig.forward(batch.x, batch.labels, kContext), rig.seed);
  take(numbers, rig.registry, rig.parameters, rig.tape.stream());
  return numbers;
}

/// A stage, and the memory that its plan asks for, not a byte more.
struct StageRig {
  StageRig(Device& device, Layer& model, const Units& units, const StageCut& the_cut,
           const InputSpec& input, const LossFunction& loss)
      : cut(the_cut),
        layer(stage_of(model, units, cut.begin, cut.end)),
        registry(register_model(*layer)),
        pass(pass_of(*layer, units, cut, loss)),
        plan(plan_training(*layer, registry, units, cut, input, loss)),
        parameters(device, registry, plan),
        activations(device, plan.activation_bytes),
        tape(device, activations, registry.parameters),
        wants_gradient(cut.begin > 0 && units[cut.begin].input.wants_gradient),
        activation_type(input.activations) {
    parameters.initialize(1);
  }

  /// `from`: the batch, or what the stage before gave.
  void forward(const ConstView& from, const View& labels) {
    tape.begin(kContext);
    parameters.narrow_values(tape.stream());
    in = copy_of(from);
    x = wants_gradient ? tape.input(in) : tape.constant(in);
    Batch batch(activation_type);
    batch.add(cut.begin == 0 ? kImages : kHandedOn, x);
    batch.add(kTargets, tape.constant(labels));
    y = pass(tape, batch);
  }
  void backward(const ConstView& dy) {
    out_gradient = copy_of(dy);
    tape.backward(y, out_gradient);
  }

  /// On the way to another device, say.
  Tensor copy_of(const ConstView& view) {
    Tensor copy(tape.device(), view.shape(), view.dtype(), view.layout());
    std::memcpy(copy.view().data(), view.data(), static_cast<std::size_t>(view.bytes()));
    return copy;
  }

  StageCut cut;
  std::unique_ptr<Layer> layer;
  Registry registry;
  Pass pass;
  Plan plan;
  Parameters parameters;
  Arena activations;
  Tape tape;
  bool wants_gradient;
  DType activation_type;
  Tensor in, out_gradient;
  Variable x, y;
};

Numbers run_stages(const Case& c, Layer& model, const Units& units, const Stages& cuts) {
  Numbers numbers;
  const auto device = open_device({});
  const BatchOnDevice batch(*device, c.spec());
  const Tensor one = test::upload<float>(*device, {1}, {1});
  std::vector<std::unique_ptr<StageRig>> stages;
  for (const StageCut& cut : cuts) {
    stages.push_back(
        std::make_unique<StageRig>(*device, model, units, cut, c.spec(), noted_loss(numbers)));
  }
  ConstView value = batch.x.view();
  for (const auto& stage : stages) {
    stage->forward(value, batch.labels);
    value = stage->y.value();
    if (stage->cut.end == units.count()) continue;
    const Crossing& crossing = units[stage->cut.end].input;
    EXPECT_EQ(value.shape(), crossing.shape);
    EXPECT_EQ(value.layout(), crossing.layout);
    EXPECT_EQ(value.dtype(), crossing.dtype);
    EXPECT_EQ(value.bytes(), crossing.bytes);
  }
  ConstView gradient = one.view();
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    (*stage)->backward(gradient);
    EXPECT_LE((*stage)->activations.high_water(), (*stage)->plan.activation_bytes);
    take(numbers, (*stage)->registry, (*stage)->parameters, device->compute());
    if (!(*stage)->wants_gradient) break;  // nothing before it has parameters
    gradient = (*stage)->tape.gradient((*stage)->x);
  }
  return numbers;
}

void expect_equal(const Numbers& whole, const Numbers& stages, const std::string& what) {
  ASSERT_GT(whole.size(), 2U);
  EXPECT_EQ(whole.size(), stages.size()) << what;
  for (const auto& [name, bytes] : whole) {
    const auto found = stages.find(name);
    ASSERT_TRUE(found != stages.end()) << what << ": no " << name;
    EXPECT_TRUE(bytes == found->second) << what << ": " << name << " has other bits";
  }
}

void expect_the_wholes_bits(const Case& c, const Numbers& whole, const std::vector<int>& begins) {
  const auto model = c.model.make(c.input());
  const Units units = units_of_case(c, *model);
  const Stages cuts = cut_before(units, begins);
  std::string what;
  for (const StageCut& cut : cuts) what += in_words(cut) + " ";
  expect_equal(whole, run_stages(c, *model, units, cuts), what);
}

class StagesTest : public ::testing::TestWithParam<Case> {};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Model& model : models()) {
    if (model.name == "resnet50") continue;
    for (const Layout layout : {Layout::nchw, Layout::lanes}) {  // processors have no nhwc
      for (const DType dtype : {DType::f32, DType::bf16}) all.push_back({model, layout, dtype});
    }
  }
  return all;
}

std::string title_of(const ::testing::TestParamInfo<Case>& test) {
  return test.param.model.name + "_" + name_of(test.param.layout) + "_" + name_of(test.param.dtype);
}
INSTANTIATE_TEST_SUITE_P(Models, StagesTest, ::testing::ValuesIn(cases()), title_of);

TEST_P(StagesTest, HaveTheBitsOfTheWhole) {
  const Case& c = GetParam();
  const std::vector<int> begins = units_of_case(c, *c.model.make(c.input())).begins();
  ASSERT_GE(begins.size(), 2U);
  const Numbers whole = run_whole(c);
  expect_the_wholes_bits(c, whole, begins);  // every cut at once
  if (c.model.is_large) return;
  expect_the_wholes_bits(c, whole, {begins.front(), begins[begins.size() / 2]});
  expect_the_wholes_bits(c, whole, {});
  for (const int begin : begins) expect_the_wholes_bits(c, whole, {begin});
}

WorkTotals sum_of(const WorkTotals& a, const WorkTotals& b) {
  WorkTotals sum = a;
  sum.flops += b.flops;
  sum.bytes += b.bytes;
  return sum;
}

// In nhwc, too, which no processor runs: the operations are the whole's, and no more.
TEST(Stages, DoTheWorkOfTheWhole) {
  for (const char* name : {"lenet", "nested", "resnet20", "resnet50", "iresnet18"}) {
    for (const Layout layout : {Layout::nchw, Layout::lanes, Layout::nhwc}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const Case c{model_called(name), layout, dtype};
        const auto model = c.model.make(c.input());
        const Registry registry = register_model(*model);
        InputSpec input = c.spec();
        input.shape = input.shape.with_batch(1);
        const Units units = units_of(*model, registry, input);
        const Plan whole = plan_training(*model, registry, input, softmax_in_f32);
        for (const int begin : units.begins()) {
          std::vector<Plan> plans;
          for (const StageCut& cut : cut_before(units, {begin})) {
            const auto stage = stage_of(*model, units, cut.begin, cut.end);
            plans.push_back(
                plan_training(*stage, register_model(*stage), units, cut, input, softmax_in_f32));
          }
          const WorkTotals forward = sum_of(plans[0].forward, plans[1].forward);
          const WorkTotals backward = sum_of(plans[0].backward, plans[1].backward);
          const std::string what = std::string(name) + " before " + units[begin].name;
          EXPECT_DOUBLE_EQ(forward.flops, whole.forward.flops) << what;
          EXPECT_DOUBLE_EQ(forward.bytes, whole.forward.bytes) << what;
          EXPECT_DOUBLE_EQ(backward.flops, whole.backward.flops) << what;
          // One copy at most: of a gradient that an operation overwrites.
          const auto copied = static_cast<double>(2 * units[begin].input.bytes);
          const double more = backward.bytes - whole.backward.bytes;
          EXPECT_TRUE(more == 0 || more == copied) << what << ": " << more;
          EXPECT_EQ(plans[0].parameter_count + plans[1].parameter_count, whole.parameter_count);
          EXPECT_EQ(plans[0].running_elements + plans[1].running_elements, whole.running_elements);
        }
      }
    }
  }
}

// Why a cut inside a group is not offered: the dry run without fusion offers all of them.
TEST(Stages, ACutThroughWhatIsFusedHasOtherBits) {
  const Case c{model_called("lenet"), Layout::lanes, DType::bf16};
  const auto model = c.model.make(c.input());
  const Units units = units_of_case(c, *model, false);
  ASSERT_TRUE(units.may_begin(1));
  const Numbers whole = run_whole(c), cut = run_stages(c, *model, units, cut_before(units, {1}));
  EXPECT_FALSE(whole.at("output") == cut.at("output"));
}

}  // namespace
}  // namespace ringlet::nn
