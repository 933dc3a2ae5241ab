// The flags of the recipe: what decides what is learnt.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/flags.h"
#include "data/augment.h"
#include "data/open_dataset.h"
#include "train/files/recipe_json.h"
#include "train/optimizers/no_decay.h"
#include "train/optimizers/optimizer.h"
#include "train/recipe/models.h"

namespace ringlet::app {

namespace {

/// All fields of each model's default recipe, by the model's name in the registry's order.
const std::vector<std::pair<std::string, nlohmann::json>>& recipes_of_models() {
  static const auto recipes = [] {
    std::vector<std::pair<std::string, nlohmann::json>> all;
    for (const std::string& model : train::model_names()) {
      all.emplace_back(model, all_fields(train::default_recipe(model)));
    }
    return all;
  }();
  return recipes;
}

/// "lenet, mlp: 0.1; lenet-d2l: 0.2": a field of the models' default recipes.
std::string defaults_of(const char* field) {
  std::vector<std::pair<std::string, std::vector<std::string>>> models_by_value;
  for (const auto& [model, recipe] : recipes_of_models()) {
    const nlohmann::json& json = recipe.at(field);
    const std::string value = json.is_string()         ? json.get<std::string>()
                              : json.is_number_float() ? fmt::format("{:g}", json.get<double>())
                                                       : json.dump();
    auto same = std::find_if(models_by_value.begin(), models_by_value.end(),
                             [&](const auto& entry) { return entry.first == value; });
    if (same == models_by_value.end()) same = models_by_value.insert(same, {value, {}});
    same->second.push_back(model);
  }
  if (models_by_value.size() == 1) return models_by_value.front().first;
  std::string text;
  for (const auto& [value, models] : models_by_value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", fmt::join(models, ", "), value);
  }
  return text;
}

/// "lenet, mlp": the models whose default recipe has `value` in `field`.
std::string models_with(const char* field, bool value) {
  std::vector<std::string> models;
  for (const auto& [model, recipe] : recipes_of_models()) {
    if (recipe.at(field) == value) models.push_back(model);
  }
  return fmt::format("{}", fmt::join(models, ", "));
}

/// Adds a flag of the recipe with a value; the value is stored in flags.recipe under `field`.
template <class T>
CLI::Option* add_recipe_option(CLI::App& app, RawFlags& flags, const std::string& name,
                               const char* field, const std::string& description) {
  return app
      .add_option_function<T>(
          name, [&flags, field](const T& value) { flags.recipe[field] = value; },
          fmt::format("{} [{}]", description, defaults_of(field)))
      ->group(kRecipeGroup);
}

/// Adds a switch. On the command line it sets `field` to `value`. A configuration may also say
/// false, which sets the opposite.
CLI::Option* add_recipe_switch(CLI::App& app, RawFlags& flags, const std::string& name,
                               const char* field, bool value, const std::string& description) {
  return app
      .add_flag_function(
          name,
          [&flags, field, value](std::int64_t on) { flags.recipe[field] = (on > 0) == value; },
          description)
      ->disable_flag_override()
      ->group(kRecipeGroup);
}

/// Adds a flag of the recipe that takes one of `choices`.
void add_recipe_choice(CLI::App& app, RawFlags& flags, const std::string& name, const char* field,
                       const std::vector<std::string>& choices, const std::string& description) {
  add_recipe_option<std::string>(app, flags, name, field, description)
      ->check(one_of(choices))
      ->type_name(fmt::format("{}", fmt::join(choices, "|")));
}

void add_optimizer_flags(CLI::App& app, RawFlags& flags) {
  std::vector<std::string> optimizers;
  for (const train::OptimizerEntry& entry : train::optimizers()) {
    optimizers.emplace_back(entry.name);
  }
  add_recipe_choice(app, flags, "--optimizer", "optimizer", optimizers,
                    "with adamw the defaults of --lr and --weight-decay are PyTorch's, 0.001 and "
                    "0.01");
  add_recipe_option<double>(app, flags, "--lr", "lr", "learning rate; with one-cycle its maximum")
      ->check(number(0));
  add_recipe_option<double>(app, flags, "--momentum", "momentum", "momentum of SGD")
      ->check(number(0, 1));
  CLI::Option* nesterov =
      add_recipe_switch(app, flags, "--nesterov", "nesterov", true,
                        "Nesterov's momentum [" + models_with("nesterov", true) + "]");
  add_recipe_switch(app, flags, "--no-nesterov", "nesterov", false,
                    "plain momentum [" + models_with("nesterov", false) + "]")
      ->excludes(nesterov);
  add_recipe_option<double>(app, flags, "--beta1", "beta1", "of AdamW's mean of gradients")
      ->check(number(0, 1));
  add_recipe_option<double>(app, flags, "--beta2", "beta2", "of AdamW's mean of their squares")
      ->check(number(0, 1));
  add_recipe_option<double>(app, flags, "--eps", "eps", "AdamW adds it to the root of the latter")
      ->check(number(0));
  add_recipe_option<double>(
      app, flags, "--weight-decay", "weight_decay",
      "SGD adds this times the parameter to its gradient; AdamW takes it, times the rate, from the "
      "parameter")
      ->check(number(0));
  add_recipe_choice(app, flags, "--no-decay", "no_decay", train::no_decay_names(),
                    "parameters without weight decay: those of normalising layers, biases");
  add_recipe_option<double>(app, flags, "--clip-norm", "clip_norm",
                            "shorten the summed gradient to this L2 norm if it is longer; 0: never")
      ->check(number(0));
  add_recipe_option<double>(app, flags, "--label-smoothing", "label_smoothing",
                            "share of each label that all classes get alike, in training")
      ->check(number(0, 1));
}

void add_schedule_flags(CLI::App& app, RawFlags& flags) {
  add_recipe_choice(app, flags, "--schedule", "schedule", train::schedule_names(),
                    "of the learning rate; one-cycle is PyTorch's OneCycleLR");
  add_recipe_switch(app, flags, "--cycle-momentum", "cycle_momentum", true,
                    "one-cycle: momentum goes 0.95 -> 0.85 -> 0.95 while the rate rises and falls");
  add_recipe_option<double>(app, flags, "--warmup-epochs", "warmup_epochs",
                            "the rate rises for so many epochs before the schedule begins")
      ->check(number(0));
  add_recipe_option<double>(app, flags, "--warmup-start", "warmup_start",
                            "share of the rate with which the warm-up begins")
      ->check(number(0, 1));
  add_recipe_option<int>(app, flags, "--step-epochs", "step_epochs",
                         "step: epochs between two changes of the rate")
      ->check(whole_number(1));
  add_recipe_option<double>(app, flags, "--gamma", "gamma", "step: what the rate is multiplied by")
      ->check(number(0));
  add_recipe_option<double>(app, flags, "--power", "power", "polynomial: its power")
      ->check(number(0));
  add_recipe_option<double>(app, flags, "--min-lr", "min_lr",
                            "cosine, polynomial: the rate to which they fall")
      ->check(number(0));
}

/// Adds the flags that say what becomes of an image before a model sees it.
void add_image_flags(CLI::App& app, RawFlags& flags) {
  std::vector<std::string> sources = train::normalizations();
  sources.emplace_back("none");
  CLI::Option* source =
      app.add_option_function<std::string>(
             "--normalize",
             [&flags](const std::string& name) {
               flags.recipe["normalize"] = name != "none";
               if (name != "none") flags.recipe["normalize_by"] = name;
             },
             fmt::format("whose mean and deviation of pixels: the training images' own (data), "
                         "ImageNet's, CIFAR-10's [{}; {}: none]",
                         train::Recipe().normalize_by, models_with("normalize", false)))
          ->check(one_of(sources))
          ->type_name(fmt::format("{}", fmt::join(sources, "|")))
          ->group(kRecipeGroup);
  add_recipe_switch(app, flags, "--no-normalize", "normalize", false,
                    "only divide pixels by 255 [" + models_with("normalize", false) + "]")
      ->excludes(source);
  add_recipe_choice(app, flags, "--augment", "augment", data::augment_names(),
                    "vary the training images, in each epoch otherwise");
  constexpr int kLargest = 4096;
  app.add_option_function<int>(
         "--image-size", [&flags](const int& size) { flags.recipe["image_size"] = size; },
         fmt::format("pixels of a side that a model sees of photographs in a folder [{}]",
                     data::kUsualImageSize))
      ->check(whole_number(1, kLargest))
      ->group(kRecipeGroup);
  app.add_option_function<int>(
         "--crop-from", [&flags](const int& side) { flags.recipe["crop_from"] = side; },
         "random-resized-crop cuts from photographs whose shorter side has at most these pixels; "
         "larger ones are made smaller first [the whole photograph]")
      ->check(whole_number(1, kLargest))
      ->group(kRecipeGroup);
  add_recipe_switch(
      app, flags, "--no-exif", "exif", false,
      "take the JPEGs of a folder as they are stored, not as their cameras were held");
}

}  // namespace

void add_precision_flags(CLI::App& app, RawFlags& flags, const char* group) {
  add_recipe_choice(app, flags, "--precision", "precision", train::precision_names(),
                    "of activations and products; all else is f32. f16 scales the loss");
  app.add_flag("--emulate-precision", flags.options.execution.emulate_precision,
               "let processors compute bf16 and f16 through f32: slower than f32, to learn and to "
               "test")
      ->group(group);
  app.get_option("--precision")->group(group);
}

void add_recipe_flags(CLI::App& app, RawFlags& flags) {
  using std::int64_t;
  add_recipe_option<int64_t>(app, flags, "--batch-size", "batch_size",
                             "the GLOBAL batch: samples of an optimiser step over all replicas")
      ->check(whole_number(1));
  add_recipe_option<int>(app, flags, "--epochs", "epochs", "times through the training data")
      ->check(whole_number(1));
  add_optimizer_flags(app, flags);
  add_schedule_flags(app, flags);
  add_recipe_option<std::uint64_t>(app, flags, "--seed", "seed",
                                   "of the weights, the order of samples and dropout")
      ->check(seed_number());
  add_recipe_switch(app, flags, "--no-shuffle", "shuffle", false, "take the samples in file order");
  add_image_flags(app, flags);
  add_recipe_option<int>(app, flags, "--accumulate", "accumulate",
                         "forward and backward passes for each replica's share of a batch")
      ->check(whole_number(1));
  add_recipe_switch(app, flags, "--exact", "exact", true,
                    "add gradients in one fixed tree: the same bits for 1, 2, 4 and 8 replicas");
  add_recipe_option<int>(app, flags, "--shards", "shards",
                         "logical shards of a batch; 0: 8 with --exact, else one for each replica")
      ->check(whole_number(0));
  add_recipe_choice(app, flags, "--grad-dtype", "grad_dtype",
                    {"f32", "f16", "bf16", "bf16-between"},
                    "type in which gradients travel; f16 and bf16 halve the bytes and round the "
                    "sums; bf16-between does so between machines only");
  add_precision_flags(app, flags);
  add_recipe_choice(app, flags, "--batch-norm", "batch_norm", {"shard", "world"},
                    "whose batch gives batch norm its mean and variance: of each replica's share "
                    "(with --exact of each shard), or of the whole world");
}

}  // namespace ringlet::app
