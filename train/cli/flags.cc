#include "train/cli/flags.h"

#include <fmt/format.h>

#include <map>

#include "comm/all_reduce.h"
#include "nn/models/model.h"
#include "train/cli/suggest.h"
#include "train/recipe_json.h"

namespace ringlet::train {

namespace {

/// "lenet 0.1, lenet-d2l 0.2, mlp 0.1": a field of the models' default recipes.
std::string defaults_of(const char* field) {
  std::map<std::string, std::vector<std::string>> models_by_value;
  for (const std::string& model : nn::model_names()) {
    const nlohmann::json value = to_json(default_recipe(model))[field];
    models_by_value[value.is_string() ? value.get<std::string>() : value.dump()].push_back(model);
  }
  if (models_by_value.size() == 1) return models_by_value.begin()->first;
  std::string text;
  for (const auto& [value, models] : models_by_value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", fmt::join(models, ", "), value);
  }
  return text;
}

/// A flag of the recipe with a value; what is given lands in flags.recipe under `field`.
template <class T>
CLI::Option* add_recipe_option(CLI::App& app, RawFlags& flags, const std::string& name,
                               const char* field, const std::string& description) {
  return app
      .add_option_function<T>(
          name, [&flags, field](const T& value) { flags.recipe[field] = value; },
          fmt::format("{} [{}]", description, defaults_of(field)))
      ->group("Recipe");
}

void add_recipe_switch(CLI::App& app, RawFlags& flags, const std::string& name, const char* field,
                       bool value, const std::string& description) {
  app.add_flag_callback(
         name, [&flags, field, value] { flags.recipe[field] = value; }, description)
      ->group("Recipe");
}

std::vector<DeviceId> devices_of(const RawFlags& flags) {
  std::vector<DeviceId> devices;
  for (const std::string& name : flags.devices) devices.push_back(DeviceId::parse(name));
  if (devices.empty()) {
    require(flags.replicas >= 1, "--replicas", "must be at least 1");
    devices.assign(static_cast<std::size_t>(flags.replicas), DeviceId::parse(flags.device));
  }
  return devices;
}

LayoutChoice layout_of(const std::string& name) {
  if (name == "nchw") return LayoutChoice::nchw;
  return name == "lanes" ? LayoutChoice::lanes : LayoutChoice::automatic;
}

TrainOptions with_recipe(const RawFlags& flags, const Recipe& recipe) {
  TrainOptions options = flags.options;
  options.recipe = recipe;
  Execution& execution = options.execution;
  execution.devices = devices_of(flags);
  execution.layout = layout_of(flags.layout);
  execution.overlap = flags.overlap == "on";
  execution.sync = !flags.sync.empty() ? flags.sync : recipe.exact ? "doubling" : "ring";
  require(execution.threads >= 1, "--threads", "must be at least 1");
  require(execution.comm_timeout > 0, "--comm-timeout", "must be more than 0 seconds");
  return options;
}

}  // namespace

CLI::Validator one_of(const std::vector<std::string>& choices) {
  const std::string list = fmt::format("{}", fmt::join(choices, "|"));
  return CLI::Validator(
      [choices, list](const std::string& word) -> std::string {
        for (const std::string& choice : choices) {
          if (word == choice) return {};
        }
        const std::string meant = nearest(word, choices);
        return fmt::format("'{}' is not one of {}{}", word, list,
                           meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
      },
      list);
}

void add_data_flags(CLI::App& app, RawFlags& flags) {
  app.add_option("--model", flags.model, "which network and recipe")
      ->check(one_of(nn::model_names()))
      ->capture_default_str()
      ->group("Model and data");
  app.add_option_function<std::string>(
         "--data", [&flags](const std::string& name) { flags.recipe["data"] = name; },
         "fashion-mnist, synthetic (drawn garments), or a folder of IDX files [fashion-mnist]")
      ->group("Model and data");
  app.add_option("--data-dir", flags.options.files.data_dir,
                 "where Fashion-MNIST lies, if not in the system's place [$RINGLET_DATA]")
      ->group("Model and data");
  app.add_option("--synthetic-train", flags.options.synthetic_train, "drawn training samples")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--synthetic-test", flags.options.synthetic_test, "drawn test samples")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group("Model and data");
}

void add_recipe_flags(CLI::App& app, RawFlags& flags) {
  using std::int64_t;
  add_recipe_option<int64_t>(app, flags, "--batch-size", "batch_size",
                             "the GLOBAL batch: samples of an optimiser step over all replicas")
      ->check(CLI::PositiveNumber);
  add_recipe_option<int>(app, flags, "--epochs", "epochs", "times through the training data")
      ->check(CLI::PositiveNumber);
  add_recipe_option<double>(app, flags, "--lr", "lr", "learning rate; with one-cycle its maximum")
      ->check(CLI::NonNegativeNumber);
  add_recipe_option<double>(app, flags, "--momentum", "momentum", "momentum of SGD")
      ->check(CLI::Range(0.0, 1.0));
  add_recipe_switch(app, flags, "--nesterov,!--no-nesterov", "nesterov", true,
                    "Nesterov's momentum [lenet, mlp]");
  add_recipe_option<double>(app, flags, "--weight-decay", "weight_decay",
                            "added to each gradient, times the value")
      ->check(CLI::NonNegativeNumber);
  add_recipe_option<std::string>(app, flags, "--schedule", "schedule",
                                 "constant, or one-cycle as PyTorch's OneCycleLR")
      ->check(one_of({"constant", "one-cycle"}));
  add_recipe_switch(app, flags, "--cycle-momentum", "cycle_momentum", true,
                    "one-cycle: momentum 0.95 -> 0.85 -> 0.95 against the rate");
  add_recipe_option<std::uint64_t>(app, flags, "--seed", "seed", "of weights, order and dropout");
  add_recipe_switch(app, flags, "--no-shuffle", "shuffle", false, "take the samples in file order");
  add_recipe_switch(app, flags, "--no-normalize", "normalize", false,
                    "divide pixels by 255 and nothing else [lenet-d2l]");
  add_recipe_option<int>(app, flags, "--accumulate", "accumulate",
                         "passes that each replica cuts its share of a batch into")
      ->check(CLI::PositiveNumber);
  add_recipe_switch(app, flags, "--exact", "exact", true,
                    "add gradients in one fixed tree: the same bits for 1, 2, 4 and 8 replicas");
  add_recipe_option<int>(app, flags, "--shards", "shards",
                         "logical shards of a batch; 0: 8 with --exact, else one a replica")
      ->check(CLI::NonNegativeNumber);
}

void add_replica_flags(CLI::App& app, RawFlags& flags) {
  Execution& execution = flags.options.execution;
  const char* group = "Replicas";
  app.add_option("--replicas", flags.replicas, "copies of the model, a thread each")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group(group);
  auto* device = app.add_option("--device", flags.device, "where all of them run")
                     ->capture_default_str()
                     ->group(group);
  app.add_option("--devices", flags.devices, "a device for each replica: cpu:0,cpu:0,...")
      ->delimiter(',')
      ->excludes(device)
      ->excludes("--replicas")
      ->group(group);
  app.add_option("--threads", execution.threads, "CPU threads of each replica")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group(group);
  app.add_option("--layout", flags.layout, "of images in memory: auto, nchw, lanes")
      ->check(one_of({"auto", "nchw", "lanes"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--comm-timeout", execution.comm_timeout,
                 "seconds that a replica waits for another before it names it and stops")
      ->capture_default_str()
      ->group(group);
}

void add_sync_flags(CLI::App& app, RawFlags& flags) {
  Execution& execution = flags.options.execution;
  const char* group = "Synchronisation";
  std::vector<std::string> strategies;
  for (const auto name : comm::all_reduce_strategies()) strategies.emplace_back(name);
  app.add_option("--sync", flags.sync, "how gradients are summed [ring; doubling with --exact]")
      ->check(one_of(strategies))
      ->group(group);
  app.add_option("--bucket-kb", execution.bucket_kb,
                 "KiB of gradients that are summed at once; 0: each parameter by itself")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--overlap", flags.overlap, "sum while backward goes on")
      ->check(one_of({"on", "off"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--check-replicas", execution.check_replicas,
                 "compare the replicas' parameters byte by byte every so many steps; 0: never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
}

TrainOptions resolve(const RawFlags& flags) {
  nlohmann::json recipe = to_json(default_recipe(flags.model));
  recipe.update(flags.recipe);
  return with_recipe(flags, recipe_from_json(recipe, "the command line"));
}

TrainOptions resolve(const RawFlags& flags, const Recipe& saved) {
  const nlohmann::json recipe = to_json(saved);
  std::string contradictions;
  for (const auto& [field, value] : flags.recipe.items()) {
    if (recipe.at(field) == value) continue;
    contradictions += fmt::format("{}{} {} (the run has {})", contradictions.empty() ? "" : ", ",
                                  field, value.dump(), recipe.at(field).dump());
  }
  if (!contradictions.empty()) {
    throw ContractError("--resume goes on with the run's own recipe, which contradicts " +
                        contradictions + "; to change it start anew with --init MODEL");
  }
  return with_recipe(flags, saved);
}

}  // namespace ringlet::train
