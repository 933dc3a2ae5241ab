// An option of one's own: --hidden, the units of a hidden layer. It is a row in the table beside
// Ringlet's, so it is read from the command line or RINGLET_HIDDEN, checked, and kept in the run's
// state, from which the second half of this program makes the same model and goes on.
//
//   own_option --hidden 32 --lr 0.05 --no-shuffle
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <random>
#include <variant>

#include "ringlet.h"

using namespace ringlet;
namespace fs = std::filesystem;

train::Option<train::Recipe> hidden_option() {
  return train::own_option("hidden", std::int64_t{64},
                           {.help = "units of the hidden layer", .range = train::from(1).to(4096)});
}

train::MakeModel mlp_of(const train::Recipe& recipe) {
  const std::int64_t hidden = std::get<std::int64_t>(hidden_option().get(recipe));
  return [hidden](const nn::ModelInput& input) {
    auto net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("in", input.channels * input.height * input.width, hidden);
    net->add<nn::ReLU>("relu");
    net->add<nn::Linear>("out", hidden, input.outputs);
    return net;
  };
}

/// Two replicas learn for as many epochs as the recipe says, `steps` steps at most.
train::RunResult learn(const train::Recipe& recipe, const fs::path& folder, std::int64_t steps,
                       std::optional<train::SavedState> resumed = {}) {
  const data::Splits garments = data::make_synthetic({.train = 1000, .test = 200});
  train::TrainOptions options{.recipe = recipe, .make_model = mlp_of(recipe)};
  options.own_options = {hidden_option()};
  options.execution.devices.resize(2);
  options.files.out = folder;
  options.max_steps = steps;
  return train::train(make_run_setup(options, garments, 2, std::move(resumed)), {});
}

int run(int argc, char** argv) {
  train::OptionTable<train::Recipe> table = train::recipe_options();
  table.add(hidden_option());
  train::Recipe recipe = train::default_recipe("mlp");
  recipe.data = "garments";
  recipe.batch_size = 50;
  recipe.epochs = 2;
  table.set(recipe, given_options(table, argc, argv));

  const fs::path folder =
      fs::temp_directory_path() / ("own_option_" + std::to_string(std::random_device{}()));
  fs::create_directories(folder);
  learn(recipe, folder, 10);
  const train::SavedState saved = train::read_state(folder);
  const train::RunResult result = learn(saved.recipe, folder, -1, saved);
  const std::int64_t hidden = std::get<std::int64_t>(table.get(saved.recipe, "hidden"));
  std::printf("%lld hidden units, as the state says: test accuracy %.1f %%\n",
              static_cast<long long>(hidden), 100 * result.test.accuracy());
  fs::remove_all(folder);
  return saved.recipe == recipe && result.test.accuracy() > 0.5 ? 0 : 1;
}

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_option: %s\n", error.what());
    return 1;
  }
}
