#include "train/files/recipe_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/files/atomic_file.h"
#include "base/files/json_fields.h"
#include "base/files/json_text.h"
#include "data/augment.h"

namespace ringlet::train {

namespace {

constexpr double kLargestImage = 4096;  // pixels of a side

/// Calls visit(name, field) for every field that is a plain value.
template <class R, class Visit>
void for_each_field(R& recipe, Visit visit) {
  visit("model", recipe.model);
  visit("data", recipe.data);
  visit("batch_size", recipe.batch_size);
  visit("epochs", recipe.epochs);
  visit("lr", recipe.lr);
  visit("momentum", recipe.momentum);
  visit("nesterov", recipe.nesterov);
  visit("weight_decay", recipe.weight_decay);
  visit("cycle_momentum", recipe.cycle_momentum);
  visit("seed", recipe.seed);
  visit("shuffle", recipe.shuffle);
  visit("normalize", recipe.normalize);
  visit("accumulate", recipe.accumulate);
  visit("exact", recipe.exact);
  visit("shards", recipe.shards);
}

/// The same for those that older versions do not know.
template <class R, class Visit>
void for_each_newer_field(R& recipe, Visit visit) {
  visit("optimizer", recipe.optimizer);
  visit("beta1", recipe.beta1);
  visit("beta2", recipe.beta2);
  visit("eps", recipe.eps);
  visit("no_decay", recipe.no_decay);
  visit("clip_norm", recipe.clip_norm);
  visit("label_smoothing", recipe.label_smoothing);
  visit("warmup_epochs", recipe.warmup_epochs);
  visit("warmup_start", recipe.warmup_start);
  visit("step_epochs", recipe.step_epochs);
  visit("gamma", recipe.gamma);
  visit("power", recipe.power);
  visit("min_lr", recipe.min_lr);
  visit("normalize_by", recipe.normalize_by);
  visit("augment", recipe.augment);
  visit("image_size", recipe.image_size);
  visit("exif", recipe.exif);
  visit("crop_from", recipe.crop_from);
}

void parse_grad_dtype(const std::string& name, Recipe& recipe) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const bool between : {false, true}) {
      Recipe named;
      named.grad_dtype = dtype;
      named.narrow_between = between;
      const bool exists = !between || dtype == DType::bf16;
      if (!exists || name != grad_dtype_name(named)) continue;
      recipe.grad_dtype = dtype;
      recipe.narrow_between = between;
      return;
    }
  }
  throw std::runtime_error("'grad_dtype' is not f32, f16, bf16 or bf16-between");
}

BatchStatistics parse_batch_statistics(const std::string& name) {
  if (name == "shard") return BatchStatistics::shard;
  if (name == "world") return BatchStatistics::world;
  throw std::runtime_error("'batch_norm' is not shard or world");
}

/// Throws std::runtime_error for a number that no run has. A Learner's state names no model, and
/// its batch size and epochs are 0.
void require_possible(const Recipe& recipe) {
  const auto check = [](const char* name, double value, double min, double max) {
    if (value >= min && value <= max) return;
    throw std::runtime_error(fmt::format("'{}' is {}, which no run has", name, value));
  };
  const double least = recipe.model.empty() ? 0 : 1;
  constexpr double kMost = std::numeric_limits<int>::max();
  constexpr double kFinite = std::numeric_limits<double>::max();
  check("batch_size", static_cast<double>(recipe.batch_size), least, kMost);
  check("epochs", recipe.epochs, least, kMost);
  check("accumulate", recipe.accumulate, 1, kMost);
  check("shards", recipe.shards, 0, kMost);
  check("lr", recipe.lr, 0, kFinite);
  check("momentum", recipe.momentum, 0, 1);
  check("weight_decay", recipe.weight_decay, 0, kFinite);
  check("image_size", recipe.image_size, 0, kLargestImage);
  check("crop_from", recipe.crop_from, 0, kLargestImage);
  data::parse_augment(recipe.augment);
  const auto& sources = normalizations();
  if (std::find(sources.begin(), sources.end(), recipe.normalize_by) == sources.end()) {
    throw std::runtime_error(fmt::format("'normalize_by' is not {}", fmt::join(sources, " or ")));
  }
  check("beta1", recipe.beta1, 0, 1);
  check("beta2", recipe.beta2, 0, 1);
  check("eps", recipe.eps, 0, kFinite);
  check("clip_norm", recipe.clip_norm, 0, kFinite);
  check("label_smoothing", recipe.label_smoothing, 0, 1);
  check("warmup_epochs", recipe.warmup_epochs, 0, kMost);
  check("warmup_start", recipe.warmup_start, 0, 1);
  check("step_epochs", recipe.step_epochs, 1, kMost);
  check("gamma", recipe.gamma, 0, kFinite);
  check("power", recipe.power, 0, kFinite);
  check("min_lr", recipe.min_lr, 0, kFinite);
}

}  // namespace

std::string grad_dtype_name(const Recipe& recipe) {
  return std::string(name_of(recipe.grad_dtype)) + (recipe.narrow_between ? "-between" : "");
}

const std::vector<std::string>& normalizations() {
  static const std::vector<std::string> names{"data", "imagenet", "cifar-10"};
  return names;
}

nlohmann::json all_fields(const Recipe& recipe) {
  nlohmann::json json;
  for_each_field(recipe, [&](const char* name, const auto& field) { json[name] = field; });
  for_each_newer_field(recipe, [&](const char* name, const auto& field) { json[name] = field; });
  json["schedule"] = name_of(recipe.schedule);
  json["grad_dtype"] = grad_dtype_name(recipe);
  json["batch_norm"] = recipe.batch_norm == BatchStatistics::world ? "world" : "shard";
  json["precision"] = name_of(recipe.precision);
  return json;
}

nlohmann::json to_json(const Recipe& recipe) {
  nlohmann::json json = all_fields(recipe);
  const nlohmann::json defaults = all_fields({});
  for_each_newer_field(recipe, [&](const char* name, const auto&) {
    if (json[name] == defaults[name]) json.erase(name);
  });
  for (const char* name : {"batch_norm", "precision"}) {
    if (json[name] == defaults[name]) json.erase(name);
  }
  return json;
}

Recipe recipe_from_json(const nlohmann::json& json, const std::string& source) {
  Recipe recipe;
  try {
    for_each_field(recipe, [&](const char* name, auto& field) { read_field(json, name, field); });
    std::string schedule;
    read_field(json, "schedule", schedule);
    recipe.schedule = parse_schedule(schedule);
    for_each_newer_field(recipe, [&](const char* name, auto& field) {
      if (json.contains(name)) read_field(json, name, field);
    });
    if (json.contains("batch_norm")) {
      std::string statistics;
      read_field(json, "batch_norm", statistics);
      recipe.batch_norm = parse_batch_statistics(statistics);
    }
    if (json.contains("precision")) {
      std::string precision;
      read_field(json, "precision", precision);
      recipe.precision = parse_precision(precision);
    }
    if (json.contains("grad_dtype")) {  // older runs know f32 alone
      std::string dtype;
      read_field(json, "grad_dtype", dtype);
      parse_grad_dtype(dtype, recipe);
    }
    require_possible(recipe);
  } catch (const std::exception& error) {
    throw FileError(source + ": the recipe cannot be read (" + on_one_line(error.what()) +
                    "); it is damaged, or another version's");
  }
  constexpr std::size_t kShown = 100;  // bytes of a name
  const nlohmann::json known = all_fields(recipe);
  for (const auto& [name, value] : json.items()) {
    if (!known.contains(name)) {
      throw FileError(source + ": the recipe has no field " + on_one_line(name, kShown) +
                      "; it is damaged, or another version's");
    }
  }
  return recipe;
}

}  // namespace ringlet::train
