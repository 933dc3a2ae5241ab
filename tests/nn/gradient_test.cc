// Whole models' gradients against the same net in double on the naive references.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/models/lenet.h"
#include "nn/models/mlp.h"
#include "tests/nn/net.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

constexpr double kTolerance = 1e-5;  // relative L2, in float

std::int64_t classes_of(const Net& net) {
  return std::get<LinearSpec>(net.layers.back().spec).out_features;
}

std::vector<double> to_double(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

Values values_of(const Rig& rig) {
  Values values;
  for (const Parameter* parameter : rig.registry.parameters) {
    values[parameter->name] = to_double(test::read(parameter->value));
  }
  return values;
}

/// Images and labels.
struct Batch {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
};

Batch random_batch(const Net& net, std::int64_t samples, std::uint32_t seed) {
  return {test::random_floats(samples * net.sample.count(), seed),
          test::random_labels(samples, seed + 1, static_cast<int>(classes_of(net)))};
}

/// A batch that keeps every ReLU and every maximum away from its kink, with the net's gradient.
struct Smooth {
  Batch batch;
  Reference reference;
};

Smooth smooth_batch(const Net& net, const Values& parameters, std::int64_t samples, double seed,
                    const StepContext& context, double distance = 1e-6) {
  for (std::uint32_t draw = 1; draw < 100; ++draw) {
    const Batch batch = random_batch(net, samples, 1000 * draw);
    const Reference reference =
        run_reference(net, parameters, to_double(batch.x), batch.labels, seed, context);
    if (reference.distance_from_kink > distance) return {batch, reference};
  }
  throw ContractError("no batch of " + std::to_string(samples) + " keeps away from the kinks");
}

/// One step of `rig` on `batch`, backward from `seed`; returns the loss.
float run_step(Rig& rig, const Net& net, const Batch& batch, Layout layout, float seed,
               const StepContext& context) {
  const auto samples = static_cast<std::int64_t>(batch.labels.size());
  const Tensor x = test::upload(*rig.device, net.sample.with_batch(samples), batch.x, layout);
  const Tensor labels = test::upload(*rig.device, {samples}, batch.labels);
  test::write<float>(rig.seed, {seed});
  const Variable loss = rig.forward(x, labels, context);
  rig.tape.backward(loss, rig.seed);
  return read_scalar(rig.tape.stream(), loss.value());
}

void expect_gradients(const Rig& rig, const Values& expected) {
  ASSERT_EQ(rig.registry.parameters.size(), expected.size());
  for (const auto& [name, gradient] : expected) {
    EXPECT_LT(test::relative_l2(rig.gradient(name), gradient), kTolerance) << name;
  }
}

const StepContext kContext{.seed = 11, .epoch = 3, .first_sample = 1000};

// The reference for the float results is itself compared with central differences.
TEST(Reference, GradientIsThatOfTheLoss) {
  constexpr double kStep = 1e-5;
  for (const Net& net : test_nets()) {
    const Rig rig(make_sequential(net), {net.sample.with_batch(2), Layout::nchw});
    Values parameters = values_of(rig);
    const auto [batch, reference] = smooth_batch(net, parameters, 2, 1, kContext, 5 * kStep);
    const auto loss_at = [&, &x = batch.x, &labels = batch.labels](double& value, double shift) {
      const double kept = value;
      value += shift;
      const double loss = run_reference(net, parameters, to_double(x), labels, 1, kContext).loss;
      value = kept;
      return loss;
    };
    for (auto& [name, values] : parameters) {
      for (std::size_t i = 0; i < values.size(); i += values.size() / 3 + 1) {
        const double slope = (loss_at(values[i], kStep) - loss_at(values[i], -kStep)) / (2 * kStep);
        EXPECT_NEAR(reference.gradients.at(name)[i], slope, 1e-7) << net.name << " " << name;
      }
    }
  }
}

struct Case {
  Net net;
  std::int64_t samples;
  Layout layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.net.name << " " << c.samples << " " << name_of(c.layout);
}

std::vector<Case> cases(const std::vector<std::int64_t>& batches) {
  std::vector<Case> all;
  for (const Net& net : test_nets()) {
    for (const std::int64_t samples : batches) {
      for (const Layout layout : {Layout::nchw, Layout::lanes}) {
        all.push_back({net, samples, layout});
      }
    }
  }
  for (const Layout layout : {Layout::nchw, Layout::lanes}) {
    all.push_back({lenet_net(28), 3, layout});
  }
  return all;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.net.name + std::to_string(info.param.net.sample[2]) + "_" +
         std::to_string(info.param.samples) + "_" + name_of(info.param.layout);
}

class GradientTest : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Nets, GradientTest,
                         ::testing::ValuesIn(cases({1, 15, 16, 17, 85, 86, 96})), case_name);
class EquivalenceTest : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Nets, EquivalenceTest, ::testing::ValuesIn(cases({1, 17, 32})), case_name);

TEST_P(GradientTest, AgreesWithDouble) {
  const auto& [net, samples, layout] = GetParam();
  const float seed = 1.0F / static_cast<float>(samples);
  Rig rig(make_sequential(net), {net.sample.with_batch(samples), layout});
  const auto [batch, reference] =
      smooth_batch(net, values_of(rig), samples, static_cast<double>(seed), kContext);
  const float loss = run_step(rig, net, batch, layout, seed, kContext);
  EXPECT_NEAR(loss / reference.loss, 1, 1e-6);
  expect_gradients(rig, reference.gradients);
}

TEST_P(EquivalenceTest, FusedAndUnfusedAgree) {
  const auto& [net, samples, layout] = GetParam();
  const InputSpec input{net.sample.with_batch(samples), layout};
  Rig fused(make_sequential(net), input);
  const Batch batch = smooth_batch(net, values_of(fused), samples, 1, kContext).batch;
  Rig plain(make_sequential(net), input, {.fuse = false});
  const float fused_loss = run_step(fused, net, batch, layout, 1, kContext);
  EXPECT_NEAR(fused_loss / run_step(plain, net, batch, layout, 1, kContext), 1, 1e-6);
  expect_gradients(fused, [&] {
    Values gradients;
    for (const Parameter* p : plain.registry.parameters) {
      gradients[p->name] = to_double(plain.gradient(p->name));
    }
    return gradients;
  }());
}

// Two micro-batches (the first one empty where there is one sample) that accumulate give the
// gradient of the whole batch, dropout included.
TEST_P(EquivalenceTest, MicroBatchesAddUp) {
  const auto& [net, samples, layout] = GetParam();
  if (net.name == "normed") GTEST_SKIP() << "a micro-batch is normalised by its own statistics";
  const InputSpec input{net.sample.with_batch(samples), layout};
  Rig whole(make_sequential(net), input), parts(make_sequential(net), input);
  const Batch batch = smooth_batch(net, values_of(whole), samples, 1, kContext).batch;
  run_step(whole, net, batch, layout, 1, kContext);

  const std::int64_t cut = samples / 2, features = net.sample.count();
  for (const auto& [begin, end] : {std::pair{std::int64_t{0}, cut}, std::pair{cut, samples}}) {
    const Tensor x = test::upload(
        *parts.device, net.sample.with_batch(end - begin),
        std::vector<float>(batch.x.begin() + begin * features, batch.x.begin() + end * features),
        layout);
    const Tensor labels = test::upload(
        *parts.device, {end - begin},
        std::vector<std::int32_t>(batch.labels.begin() + begin, batch.labels.begin() + end));
    StepContext context = kContext;
    context.first_sample += begin;
    const Variable loss = parts.forward(x, labels, context);
    parts.tape.backward(loss, parts.seed, {.accumulate = begin > 0});
  }
  for (const Parameter* p : whole.registry.parameters) {
    EXPECT_LT(test::relative_l2(parts.gradient(p->name), whole.gradient(p->name)), kTolerance)
        << p->name;
  }
}

// A batch without samples is legal: no loss, zero gradients.
TEST(Gradient, OfAnEmptyBatchIsZero) {
  for (const Net& net : test_nets()) {
    for (const Layout layout : {Layout::nchw, Layout::lanes}) {
      Rig rig(make_sequential(net), {net.sample.with_batch(16), layout});
      fill(rig.tape.stream(), NAN, rig.parameters.gradients());
      EXPECT_EQ(run_step(rig, net, {}, layout, 1, kContext), 0);
      for (const Parameter* p : rig.registry.parameters) {
        EXPECT_EQ(rig.gradient(p->name), std::vector<float>(rig.gradient(p->name).size()))
            << net.name << " " << p->name << " " << name_of(layout);
      }
    }
  }
}

// What the lanes beyond the batch hold must not matter.
TEST(Gradient, DoesNotDependOnTheLanesBeyondTheBatch) {
  for (const Net& net : test_nets()) {
    const Batch batch = random_batch(net, 17, 5);
    const Shape shape = net.sample.with_batch(17);
    std::vector<std::vector<float>> seen;
    for (const float padding : {0.0F, 100.0F}) {
      Rig rig(make_sequential(net), {shape, Layout::lanes});
      const Tensor x = test::upload(*rig.device, shape, batch.x, Layout::lanes, padding);
      rig.step(x, test::upload(*rig.device, {17}, batch.labels));
      seen.push_back(test::read(rig.parameters.gradients()));
    }
    EXPECT_EQ(seen[0], seen[1]) << net.name;
  }
}

// The library's models are the nets that were written down here.
TEST(Model, IsTheNetItIsSaidToBe) {
  using Make = std::unique_ptr<Layer> (*)(const ModelInput& input);
  const Make practical = [](const ModelInput& input) {
    return make_lenet(input, LeNetStart::practitioner);
  };
  const Make textbook = [](const ModelInput& input) {
    return make_lenet(input, LeNetStart::textbook);
  };
  for (const auto& [make, net] : {std::pair<Make, Net>{practical, lenet_net(28)},
                                  {textbook, lenet_net(28)},
                                  {make_mlp, test_nets().front()}}) {
    const ModelInput input{.height = static_cast<int>(net.sample[2]),
                           .width = static_cast<int>(net.sample[3])};
    Rig rig(make(input), {net.sample.with_batch(2), Layout::nchw}, {.seed = 5});
    const Smooth smooth = smooth_batch(net, values_of(rig), 2, 1, {}, 0);
    run_step(rig, net, smooth.batch, Layout::nchw, 1, {});
    expect_gradients(rig, smooth.reference.gradients);
  }
}

}  // namespace
}  // namespace ringlet::nn
