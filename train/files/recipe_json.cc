#include "train/files/recipe_json.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/files/atomic_file.h"
#include "base/files/json_fields.h"
#include "base/files/json_text.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::train {

namespace {

using nlohmann::json;

constexpr const char* kOwn = "own";  // holds the values of a program's own rows

json as_json(const OptionValue& value) {
  return std::visit([](const auto& held) { return json(held); }, value);
}

template <class T>
OptionValue value_of(const json& object, const std::string& key) {
  T value{};
  read_field(object, key.c_str(), value);
  return value;
}

/// The member `key` of `object` as a value of type `type`, strictly.
OptionValue read_value(const json& object, const std::string& key, std::size_t type) {
  switch (type) {
    case 0:
      return value_of<bool>(object, key);
    case 1:
      return value_of<std::int64_t>(object, key);
    case 2:
      return value_of<std::uint64_t>(object, key);
    case 3:
      return value_of<double>(object, key);
    default:
      return value_of<std::string>(object, key);
  }
}

std::size_t type_of(const json& value) {
  if (value.is_boolean()) return 0;
  constexpr auto kMostSigned = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMostSigned) return 2;
  if (value.is_number_integer()) return 1;
  return value.is_number() ? 3 : 4;
}

GivenOptions read_own(const json& own) {
  GivenOptions values;
  for (const auto& [key, value] : own.items()) values[key] = read_value(own, key, type_of(value));
  return values;
}

/// Throws std::runtime_error for a value that no run has. A program's own optimiser may have had
/// the ends of ranges, which Ringlet's do not take.
void require_possible(const OptionRow& row, const OptionValue& value, const Recipe& recipe) {
  if (row.with_ends().takes(value) || is_left_out(row, value, recipe)) return;
  throw std::runtime_error(fmt::format("'{}' is {}, which no run has", row.key, text_of(value)));
}

Recipe read_recipe(const json& object) {
  Recipe recipe;
  for (const Option<Recipe>& row : recipe_options().rows()) {
    if (!row.since_first_states && !object.contains(row.key)) continue;
    if (row.key == "grad_dtype" && !object.contains(row.key)) continue;  // f32 alone was known
    row.set(recipe, read_value(object, row.key, row.type));
    require_possible(row, row.get(recipe), recipe);
  }
  if (object.contains(kOwn)) recipe.own = read_own(object.at(kOwn));
  return recipe;
}

}  // namespace

json all_fields(const Recipe& recipe) {
  json object;
  for (const Option<Recipe>& row : recipe_options().rows()) {
    object[row.key] = as_json(row.get(recipe));
  }
  for (const auto& [key, value] : recipe.own) object[kOwn][key] = as_json(value);
  return object;
}

json to_json(const Recipe& recipe) {
  json object = all_fields(recipe);
  const Recipe defaults;
  for (const Option<Recipe>& row : recipe_options().rows()) {
    if (!row.since_first_states && row.get(recipe) == row.get(defaults)) object.erase(row.key);
  }
  return object;
}

Recipe recipe_from_json(const json& object, const std::string& source) {
  Recipe recipe;
  try {
    recipe = read_recipe(object);
  } catch (const std::exception& error) {
    throw FileError(source + ": the recipe cannot be read (" + on_one_line(error.what()) +
                    "); it is damaged, or another version's");
  }
  constexpr std::size_t kShown = 100;  // bytes of a name
  for (const auto& [name, value] : object.items()) {
    if (name == kOwn || recipe_options().find(name) != nullptr) continue;
    throw FileError(source + ": the recipe has no field " + on_one_line(name, kShown) +
                    "; it is damaged, or another version's");
  }
  return recipe;
}

}  // namespace ringlet::train
