// The flags of the recipe, what decides what is learnt. Each comes from its row in
// train::recipe_options().
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/flags.h"
#include "train/recipe/models.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::app {

namespace {

using Row = train::Option<train::Recipe>;

std::string default_text(const Row& row, const train::Recipe& recipe) {
  const train::OptionValue value = row.get(recipe);
  const auto* number = std::get_if<double>(&value);
  return number != nullptr ? fmt::format("{:g}", *number) : train::text_of(value);
}

/// "lenet, mlp: 0.1; lenet-d2l: 0.2": what the models' recipes have.
std::string defaults_of(const Row& row) {
  std::vector<std::pair<std::string, std::vector<std::string>>> models_by_value;
  for (const std::string& model : train::model_names()) {
    const std::string value = default_text(row, train::default_recipe(model));
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

/// "lenet, mlp": the models whose recipe has `value` there.
std::string models_with(const Row& row, bool value) {
  std::vector<std::string> models;
  for (const std::string& model : train::model_names()) {
    if (std::get<bool>(row.get(train::default_recipe(model))) == value) models.push_back(model);
  }
  return fmt::format("{}", fmt::join(models, ", "));
}

/// Adds a switch that sets the row to `value`. A configuration may also say false, which sets the
/// opposite.
CLI::Option* add_switch(CLI::App& app, RawFlags& flags, const Row& row, const std::string& name,
                        bool value, const std::string& help) {
  const std::string models = models_with(row, value);
  return app
      .add_flag_function(
          name,
          [&flags, key = row.key, value](std::int64_t on) {
            flags.recipe[key] = (on > 0) == value;
          },
          models.empty() ? help : fmt::format("{} [{}]", help, models))
      ->disable_flag_override()
      ->group(kRecipeGroup);
}

void add_switches(CLI::App& app, RawFlags& flags, const Row& row) {
  CLI::Option* own =
      add_switch(app, flags, row, row.flag_name(), row.form != train::Switch::off, row.help);
  if (row.form == train::Switch::both) {
    const std::string off = "--no-" + row.flag_name().substr(2);
    add_switch(app, flags, row, off, false, row.help_off)->excludes(own);
  }
  for (const Row& other : train::recipe_options().rows()) {
    if (other.off_key != nullptr && other.off_key == row.key)
      own->excludes(app.get_option(other.flag_name()));
  }
}

template <class T>
CLI::Option* add_value(CLI::App& app, RawFlags& flags, const Row& row, const std::string& help) {
  return app.add_option_function<T>(
      row.flag_name(), [&flags, key = row.key](const T& value) { flags.recipe[key] = value; },
      help);
}

/// Adds a flag that takes one of the row's choices.
void add_choice(CLI::App& app, RawFlags& flags, const Row& row) {
  std::vector<std::string> choices = row.choices();
  std::string standard = defaults_of(row);
  CLI::Option* option = nullptr;
  if (row.off_word == nullptr) {
    option = add_value<std::string>(app, flags, row, fmt::format("{} [{}]", row.help, standard));
  } else {
    const Row& off = train::recipe_options().at(row.off_key);
    choices.emplace_back(row.off_word);
    standard =
        fmt::format("{}; {}: {}", default_text(row, {}), models_with(off, false), row.off_word);
    option = app.add_option_function<std::string>(
        row.flag_name(),
        [&flags, &row](const std::string& value) {
          flags.recipe[row.off_key] = value != row.off_word;
          if (value != row.off_word) flags.recipe[row.key] = value;
        },
        fmt::format("{} [{}]", row.help, standard));
  }
  option->check(one_of(choices))
      ->type_name(fmt::format("{}", fmt::join(choices, "|")))
      ->group(kRecipeGroup);
}

void add_number(CLI::App& app, RawFlags& flags, const Row& row) {
  const std::string help =
      fmt::format("{} [{}]", row.help,
                  row.default_in_words != nullptr ? row.default_in_words : defaults_of(row));
  const bool is_seed = row.type == train::OptionValue(std::uint64_t{}).index();
  CLI::Option* option = is_seed ? add_value<std::uint64_t>(app, flags, row, help)
                        : row.type == train::OptionValue(double{}).index()
                            ? add_value<double>(app, flags, row, help)
                            : add_value<std::int64_t>(app, flags, row, help);
  option->check(number_of(row))->group(kRecipeGroup);
}

void add_text(CLI::App& app, RawFlags& flags, const Row& row) {
  add_value<std::string>(app, flags, row, fmt::format("{} [{}]", row.help, defaults_of(row)))
      ->group(kRecipeGroup);
}

void add_flag(CLI::App& app, RawFlags& flags, const Row& row) {
  if (row.is_switch()) return add_switches(app, flags, row);
  if (row.choices != nullptr) return add_choice(app, flags, row);
  if (row.type == train::OptionValue(std::string()).index()) return add_text(app, flags, row);
  add_number(app, flags, row);
}

}  // namespace

void add_precision_flags(CLI::App& app, RawFlags& flags, const char* group) {
  add_choice(app, flags, train::recipe_options().at("precision"));
  app.add_flag("--emulate-precision", flags.options.execution.emulate_precision,
               "let processors compute bf16 and f16 through f32: slower than f32, to learn and to "
               "test")
      ->group(group);
  app.get_option("--precision")->group(group);
}

void add_recipe_flags(CLI::App& app, RawFlags& flags) {
  for (const Row& row : train::recipe_options().rows()) {
    if (row.key == "precision") {
      add_precision_flags(app, flags);
    } else if (row.has_flag) {
      add_flag(app, flags, row);
    }
  }
}

}  // namespace ringlet::app
