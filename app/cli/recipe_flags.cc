// The flags of the recipe, what decides what is learnt. Each comes from its row in
// train::recipe_options().
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/cli/flags.h"
#include "app/cli/option_flags.h"
#include "train/recipe/models.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::app {

namespace {

using Row = train::Option<train::Recipe>;

NoteOption note_of(RawFlags& flags, const Row& row) {
  return [&flags, key = row.key](const train::OptionValue& value) { flags.recipe[key] = value; };
}

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

/// Adds the switch of a row. A configuration may also say false, which sets the opposite.
CLI::Option* add_switch(CLI::App& app, RawFlags& flags, const Row& row, const std::string& help) {
  const std::string models = models_with(row, row.form != train::Switch::off);
  return add_flag(app, row, models.empty() ? help : fmt::format("{} [{}]", help, models),
                  note_of(flags, row))
      ->group(kRecipeGroup);
}

void add_switches(CLI::App& app, RawFlags& flags, const Row& row) {
  CLI::Option* own = add_switch(app, flags, row, row.help);
  if (row.form == train::Switch::both) {
    Row off = row;
    off.form = train::Switch::off;
    add_switch(app, flags, off, row.help_off)->excludes(own);
  }
  for (const Row& other : train::recipe_options().rows()) {
    if (other.off_key != nullptr && other.off_key == row.key)
      own->excludes(app.get_option(other.flag_name()));
  }
}

/// Adds a flag whose value may also be the word that switches another row off.
CLI::Option* add_with_off_word(CLI::App& app, RawFlags& flags, const Row& row) {
  train::OptionRow all = row;
  all.choices = [&row] {
    std::vector<std::string> choices = row.choices();
    choices.emplace_back(row.off_word);
    return choices;
  };
  const std::string help =
      fmt::format("{} [{}; {}: {}]", row.help, default_text(row, {}),
                  models_with(train::recipe_options().at(row.off_key), false), row.off_word);
  return add_flag(app, all, help, [&flags, &row](const train::OptionValue& value) {
    const bool is_on = std::get<std::string>(value) != row.off_word;
    flags.recipe[row.off_key] = is_on;
    if (is_on) flags.recipe[row.key] = value;
  });
}

void add_row(CLI::App& app, RawFlags& flags, const Row& row, const char* group = kRecipeGroup) {
  if (row.is_switch()) return add_switches(app, flags, row);
  if (row.off_word != nullptr) {
    add_with_off_word(app, flags, row)->group(group);
    return;
  }
  const bool in_words = row.default_in_words != nullptr;
  std::string standard = in_words ? row.default_in_words : defaults_of(row);
  if (row.for_photographs != nullptr) {
    standard += std::string("; a folder of photographs: ") + row.for_photographs;
  }
  add_flag(app, row, fmt::format("{} [{}]", row.help, standard), note_of(flags, row))->group(group);
}

}  // namespace

void add_precision_flags(CLI::App& app, RawFlags& flags, const char* group,
                         PrecisionFlag precision) {
  Row row = train::recipe_options().at("precision");
  if (precision == PrecisionFlag::may_be_auto) {
    row.help += "; auto times steps in f32 and bf16, and takes bf16 where that is faster";
    row.choices = [named = row.choices] {
      std::vector<std::string> choices = named();
      choices.emplace_back(train::kAutomaticPrecision);
      return choices;
    };
  }
  add_row(app, flags, row, group);
  add_run_flags(app, flags, group, {"emulate_precision"});
}

bool leaves_precision_open(const RawFlags& flags) {
  return given_or<std::string>(flags, "precision", "") == train::kAutomaticPrecision;
}

void add_recipe_flags(CLI::App& app, RawFlags& flags, const char* group,
                      std::initializer_list<const char*> keys) {
  for (const char* key : keys) add_row(app, flags, train::recipe_options().at(key), group);
}

void add_recipe_flags(CLI::App& app, RawFlags& flags, PrecisionFlag precision) {
  for (const Row& row : train::recipe_options().rows()) {
    if (row.key == "precision") {
      add_precision_flags(app, flags, kRecipeGroup, precision);
    } else if (row.has_flag) {
      add_row(app, flags, row);
    }
  }
}

}  // namespace ringlet::app
