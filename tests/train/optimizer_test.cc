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
#include "train/models.h"

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
  recipe.optimizer = "another";
  const nlohmann::json json = to_json(recipe);
  EXPECT_EQ(recipe_from_json(json, "the state"), recipe);
}

TEST(Optimizers, AreFoundByNameAndCheckTheRecipe) {
  EXPECT_EQ(find_optimizer(Recipe{}.optimizer).name, std::string("sgd"));
  TrainOptions options = plain_options(1);
  options.recipe.optimizer = "foo";
  const auto message_of_setup = [&] {
    return testing::message_of<ContractError>([&] { make_run_setup(options, small_data(), 1); });
  };
  EXPECT_TRUE(says(message_of_setup(), {"no optimiser 'foo'", "sgd"}));
  options.recipe = {.optimizer = "sgd", .momentum = 0, .nesterov = true};
  EXPECT_TRUE(says(message_of_setup(), {"--nesterov", "--momentum"}));
}

}  // namespace
}  // namespace ringlet::train
