// Optimisers: a toy with a state of its own, added as CONTRIBUTING's recipe says, trains, and its
// state is saved, resumed and compared by the code that SGD's is.
#include "train/optimizers/optimizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/host_copy.h"
#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/train/runs.h"
#include "train/files/recipe_json.h"
#include "train/files/safetensors.h"
#include "train/optimizers/no_decay.h"
#include "train/recipe/models.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::train {
namespace {

using testing::says;

constexpr std::int64_t kSteps = 6;

/// Momentum, then a second average over it; both are needed to go on. On the CPU alone.
///   fast = momentum * fast + gradient,  slow = 0.5 slow + 0.5 fast,  value -= lr * sign(slow)
class SmoothSign final : public Optimizer {
 public:
  SmoothSign(Device& device, const nn::Parameters& parameters)
      : Optimizer(device, parameters, {"fast", "slow"}) {}

  void step(ConstView rates) override {
    const float *const rate = rates.f32(), *const gradient = gradients().f32();
    float *const fast = arena(0).f32(), *const slow = arena(1).f32(), *const value = values().f32();
    for (std::int64_t i = 0; i < values().count(); ++i) {
      fast[i] = rate[1] * fast[i] + gradient[i];
      slow[i] = 0.5F * slow[i] + 0.5F * fast[i];
      const float sign = slow[i] > 0 ? 1.0F : slow[i] < 0 ? -1.0F : 0.0F;
      value[i] -= rate[0] * sign;
    }
  }
};

/// What the toy's pair would give to optimizer.cc's table.
OptimizerEntry smooth_sign() {
  return {"smooth-sign", [](const Recipe&) {},
          [](Device& device, const nn::Parameters& parameters, const Recipe&) {
            return std::make_unique<SmoothSign>(device, parameters);
          }};
}

/// Those of the registry, and the toy.
std::vector<OptimizerEntry> entries() {
  std::vector<OptimizerEntry> all(optimizers().begin(), optimizers().end());
  all.push_back(smooth_sign());
  return all;
}

TrainOptions options_with(const OptimizerEntry& entry, int replicas) {
  TrainOptions options = exact_options(replicas);
  options.recipe.model = "mlp";
  options.recipe.schedule = ScheduleKind::constant;
  options.recipe.lr = entry.name == std::string("sgd") ? 0.05 : 0.002;
  options.recipe.optimizer = entry.name;
  options.make_optimizer = entry.make;
  return options;
}

data::Splits small_data() {
  static const data::Splits data = formula_splits(kSteps * 64);
  return data;
}

Outcome run_in(const std::filesystem::path& out, TrainOptions options, bool resume) {
  options.files.out = out;
  std::optional<SavedState> saved;
  if (resume) {
    saved = read_state(out);
    options.recipe = saved->recipe;
  }
  const int ranks = static_cast<int>(options.execution.devices.size());
  return run(make_run_setup(options, small_data(), ranks, saved));
}

class AnyOptimizer : public ::testing::TestWithParam<OptimizerEntry> {};

TEST_P(AnyOptimizer, GoesOnFromAnyStepAsIfNeverStopped) {
  const testing::TemporaryDirectory whole_folder;
  const Outcome whole = run_in(whole_folder.path(), options_with(GetParam(), 2), false);
  EXPECT_LT(whole.losses().back(), whole.losses().front());
  for (std::int64_t stop = 0; stop < kSteps; ++stop) {
    SCOPED_TRACE(stop);
    const testing::TemporaryDirectory folder;
    TrainOptions first = options_with(GetParam(), 2);
    first.max_steps = stop;
    run_in(folder.path(), first, false);
    const Outcome rest = run_in(folder.path(), options_with(GetParam(), 4), true);
    ASSERT_FALSE(rest.state.optimizer.empty());
    for (const HostState& of_rank : rest.of_ranks) {
      EXPECT_TRUE(bytes_of(of_rank) == bytes_of(whole.state));
    }
    EXPECT_EQ(testing::read_file(folder / "state/optimizer.safetensors"),
              testing::read_file(whole_folder / "state/optimizer.safetensors"));
  }
}

TEST_P(AnyOptimizer, StateIsComparedOverTheReplicas) {
  TrainOptions options = options_with(GetParam(), 2);
  options.execution.check_replicas = 1;
  options.recipe.lr = 0;  // so that the parameters stay equal
  const auto spoil = [](TrainLoop& loop, Device& device, int rank) {
    const float number = 1;
    const View last = loop.optimizer().state().back().numbers;
    if (rank == 1) copy_from_host(device.compute(), &number, last.slice(0, 1));
  };
  const auto message = testing::message_of<comm::MismatchError>(
      [&] { run(make_run_setup(options, small_data(), 2), {}, spoil); });
  EXPECT_TRUE(says(message, {"after step 1", "rank 1"}));
  EXPECT_FALSE(says(message, {"parameters"}));
}

INSTANTIATE_TEST_SUITE_P(All, AnyOptimizer, ::testing::ValuesIn(entries()), [](const auto& test) {
  std::string name = test.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Optimizers, SeveralArenasAreNamedInTheFile) {
  const testing::TemporaryDirectory out;
  run_in(out.path(), options_with(smooth_sign(), 1), false);
  const SafetensorsFile file(out / "state/optimizer.safetensors");
  std::vector<std::string> names;
  for (const auto& entry : file.entries()) names.push_back(entry.spec.name);
  EXPECT_TRUE(
      says(fmt::format("{}", fmt::join(names, " ")), {"fast/fc1.weight", "slow/fc1.weight"}));

  const auto model = make_model("mlp", {.height = 28, .width = 28});
  const auto message = testing::message_of<FileError>(
      [&] { load_state(read_state(out.path()), nn::register_model(*model), {"velocity"}); });
  EXPECT_TRUE(says(message, {"optimizer.safetensors", "fc1.weight"}));
}

TEST(Optimizers, StatesOfTheDefaultSayNothingOfIt) {
  Recipe recipe;
  EXPECT_FALSE(to_json(recipe).contains("optimizer")) << "older versions refuse unknown fields";
  for (const char* newer : {"beta1", "clip_norm", "warmup_epochs", "min_lr", "no_decay"}) {
    EXPECT_FALSE(to_json(recipe).contains(newer)) << newer;
    EXPECT_TRUE(all_fields(recipe).contains(newer)) << newer;
  }
  EXPECT_EQ(recipe_from_json(to_json(recipe), "the state"), recipe);
  recipe.optimizer = "another";
  recipe.beta2 = 0.95;
  recipe.no_decay = "norm,bias";
  recipe.schedule = ScheduleKind::polynomial;
  recipe.step_epochs = 3;
  const nlohmann::json json = to_json(recipe);
  EXPECT_EQ(recipe_from_json(json, "the state"), recipe);
}

TEST(Optimizers, BringTheirOwnRatesToARecipeMadeForAnother) {
  Recipe recipe = default_recipe("lenet");
  const Recipe before = recipe;
  choose_optimizer(recipe, "sgd");
  EXPECT_EQ(recipe, before);
  choose_optimizer(recipe, "adamw");
  EXPECT_EQ(recipe.optimizer, "adamw");
  EXPECT_EQ(recipe.lr, 1e-3);
  EXPECT_EQ(recipe.weight_decay, 1e-2);
  EXPECT_EQ(recipe.schedule, before.schedule);
  EXPECT_NO_THROW(check_optimizer(recipe));
}

TEST(Optimizers, RefuseTheOthersNumbers) {
  const auto message = [](const OptimizerSpec& spec, double momentum = 0) {
    Recipe recipe;
    static_cast<OptimizerSpec&>(recipe) = spec;
    recipe.momentum = momentum;
    return testing::message_of<ContractError>([&] {
      check_ranges(recipe, [](const OptionRow& row) { return row.flag_name(); });
      check_belongings(recipe, true, false);
    });
  };
  const std::string adamw = "adamw";
  EXPECT_TRUE(says(message({.beta1 = 0.8}), {"--beta1: is for --optimizer adamw; leave it out"}));
  EXPECT_TRUE(says(message({.beta2 = 0.8}), {"--beta2", "adamw"}));
  EXPECT_TRUE(says(message({.eps = 1}), {"--eps", "adamw"}));
  EXPECT_TRUE(says(message({.optimizer = adamw}, 0.9), {"--momentum", "--beta1"}));
  EXPECT_TRUE(says(message({.optimizer = adamw, .nesterov = true}), {"--nesterov", "SGD"}));
  EXPECT_TRUE(says(message({.optimizer = adamw, .beta1 = 1}), {"--beta1", "below 1"}));
  EXPECT_TRUE(says(message({.optimizer = adamw, .beta2 = 1}), {"--beta2", "below 1"}));
  EXPECT_TRUE(says(message({.optimizer = adamw, .eps = 0}), {"--eps", "above 0"}));
}

TEST(NoDecay, GoesByTheKindOfParameter) {
  using nn::ParameterKind;
  nn::Parameter weight({3, 7}, nn::Initializer::zeros()), bias({3}, nn::Initializer::zeros()),
      gain({20}, nn::Initializer::zeros(), ParameterKind::norm);
  EXPECT_EQ(weight.kind, ParameterKind::weight);
  EXPECT_EQ(bias.kind, ParameterKind::bias);
  nn::Registry registry;
  registry.add(weight, "weight");
  registry.add(bias, "bias");
  registry.add(gain, "gain");
  nn::Plan plan;  // gain, weight, bias: elements 0 to 20, 32 to 53, 64 to 67
  plan.parameters = {{"gain", gain.shape, gain.id, 1, 0, 20},
                     {"weight", weight.shape, weight.id, 1, 32, 53},
                     {"bias", bias.shape, bias.id, 1, 64, 67}};
  plan.elements = 80;
  const auto device = open_device(DeviceId{});
  const nn::Parameters parameters(*device, registry, plan);
  const auto decays = [&](const std::string& name) {
    const Tensor table = decay_table(*device, parameters, parse_no_decay(name));
    std::vector<std::uint8_t> values(5, 1);
    if (!table.view().absent()) copy_to_host(device->compute(), table, values.data());
    return values;
  };
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(decays("none"), (Bytes{1, 1, 1, 1, 1}));
  EXPECT_EQ(decays("norm"), (Bytes{0, 0, 1, 1, 1}));
  EXPECT_EQ(decays("bias"), (Bytes{1, 1, 1, 1, 0}));
  EXPECT_EQ(decays("norm,bias"), (Bytes{0, 0, 1, 1, 0}));
  EXPECT_TRUE(says(testing::message_of<ContractError>([] { parse_no_decay("biases"); }),
                   {"--no-decay", "norm,bias"}));
}

TEST(NoDecay, KnowsBatchNormsParameters) {
  const auto model = make_model("resnet20", {.channels = 3, .height = 32, .width = 32});
  int norms = 0, biases = 0;
  for (const nn::Parameter* parameter : nn::register_model(*model).parameters) {
    norms += parameter->kind == nn::ParameterKind::norm ? 1 : 0;
    biases += parameter->kind == nn::ParameterKind::bias ? 1 : 0;
  }
  EXPECT_EQ(norms, 2 * 21);  // 19 convolutions and two shortcuts
  EXPECT_EQ(biases, 1);      // the last layer's
}

TEST(Optimizers, AreFoundByNameAndCheckTheRecipe) {
  EXPECT_EQ(find_optimizer(Recipe{}.optimizer).name, std::string("sgd"));
  TrainOptions options = plain_options(1);
  options.recipe.optimizer = "foo";
  const auto message_of_setup = [&] {
    return testing::message_of<ContractError>([&] { make_run_setup(options, small_data(), 1); });
  };
  EXPECT_TRUE(says(message_of_setup(), {"no optimiser 'foo'", "sgd"}));
  options.recipe = {};
  options.recipe.nesterov = true;
  EXPECT_TRUE(says(message_of_setup(), {"--nesterov", "--momentum"}));
}

}  // namespace
}  // namespace ringlet::train
