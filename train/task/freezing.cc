#include "train/task/freezing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/one_line.h"
#include "nn/last_layer.h"

namespace ringlet::train {

namespace {

constexpr const char* kAllButHead = "all-but-head";

/// Those whose rows are cut, and those of the loss, are learnt in any case.
bool may_be_frozen(const nn::Parameter& parameter) {
  return !parameter.of_loss && parameter.placement != nn::Placement::rows;
}

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream rest(list);
  for (std::string name; std::getline(rest, name, ',');) names.push_back(name);
  return names;
}

bool is_in(const std::string& name, const std::string& layer) {
  return name == layer || name.starts_with(layer + ".");
}

/// "conv1, bn1, layer1, fc"
std::string layers_of(const nn::Registry& registry) {
  std::vector<std::string> layers;
  for (const nn::Parameter* parameter : registry.parameters) {
    if (!may_be_frozen(*parameter)) continue;
    const std::string layer = parameter->name.substr(0, parameter->name.find('.'));
    if (layers.empty() || layers.back() != layer) layers.push_back(layer);
  }
  return fmt::format("{}", fmt::join(layers, ", "));
}

void require_known(const nn::Registry& registry, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool is_known = std::ranges::any_of(registry.parameters, [&](const auto* parameter) {
      return may_be_frozen(*parameter) && is_in(parameter->name, name);
    });
    if (is_known) continue;
    throw ContractError(
        fmt::format("--freeze: '{}' is no layer and no parameter of this model; its layers are {}, "
                    "and {} is all before the last one",
                    on_one_line(name), layers_of(registry), kAllButHead));
  }
}

}  // namespace

void mark_parameters(const nn::Registry& registry, const Recipe& recipe) {
  const nn::LastLayer head(registry);
  for (nn::Parameter* parameter : registry.parameters) {
    parameter->is_head = recipe.head_lr > 0 && may_be_frozen(*parameter) && head.has(*parameter);
  }
  if (recipe.freeze.empty()) return;
  const bool all_but_head = recipe.freeze == kAllButHead;
  const std::vector<std::string> names = names_in(recipe.freeze);
  if (!all_but_head) require_known(registry, names);
  const auto is_named = [&](const auto& tensor) {
    if (all_but_head) return !head.has(tensor);
    return std::ranges::any_of(names, [&](const auto& layer) { return is_in(tensor.name, layer); });
  };
  bool learns = false;
  for (nn::Parameter* parameter : registry.parameters) {
    parameter->is_frozen = may_be_frozen(*parameter) && is_named(*parameter);
    learns = learns || (!parameter->is_frozen && !parameter->of_loss);
  }
  for (nn::RunningStatistics* running : registry.running) {
    running->is_frozen = is_named(running->mean);
  }
  if (!learns) {
    throw ContractError(
        fmt::format("--freeze {}: nothing would be left to learn; leave out one of {}",
                    on_one_line(recipe.freeze), layers_of(registry)));
  }
}

void require_head_learns(const nn::Registry& registry, const Recipe& recipe) {
  const bool learns = std::ranges::any_of(registry.parameters, [](const nn::Parameter* parameter) {
    return parameter->is_head && !parameter->is_frozen;
  });
  if (recipe.head_lr == 0 || learns) return;
  throw ContractError(fmt::format(
      "--freeze {} has the last layer, to which --head-lr gives a rate; leave one of them out",
      on_one_line(recipe.freeze)));
}

}  // namespace ringlet::train
