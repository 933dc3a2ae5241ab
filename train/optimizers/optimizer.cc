#include "train/optimizers/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/decay_table.h"
#include "kernels/elementwise.h"
#include "train/optimizers/adamw.h"
#include "train/optimizers/sgd.h"

namespace ringlet::train {

bool writes_gradient_scale(const Recipe& recipe) {
  return recipe.clip_norm > 0 || recipe.precision == Precision::f16;
}

std::span<const OptimizerEntry> optimizers() {
  static const std::array all{
      sgd_optimizer(),
      adamw_optimizer(),
  };
  return all;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerEntry& entry : optimizers()) names.emplace_back(entry.name);
  return names;
}

const OptimizerEntry& find_optimizer(const std::string& name) {
  for (const OptimizerEntry& entry : optimizers()) {
    if (entry.name == name) return entry;
  }
  throw ContractError(fmt::format("there is no optimiser '{}'; the optimisers are {}", name,
                                  fmt::join(optimizer_names(), ", ")));
}

void check_optimizer(const Recipe& recipe) {
  const OptimizerEntry& entry = find_optimizer(recipe.optimizer);
  if (entry.check != nullptr) entry.check(recipe);
}

void choose_optimizer(Recipe& recipe, const std::string& name) {
  const OptimizerEntry& entry = find_optimizer(name);
  if (recipe.optimizer != name && entry.set_defaults != nullptr) entry.set_defaults(recipe);
  recipe.optimizer = name;
}

std::unique_ptr<Optimizer> make_optimizer(Device& device, const nn::Parameters& parameters,
                                          const Recipe& recipe, const MakeOptimizer& own) {
  const MakeOptimizer& make = own ? own : find_optimizer(recipe.optimizer).make;
  std::unique_ptr<Optimizer> made = make(device, parameters, recipe);
  require(made != nullptr, "make_optimizer",
          "returned no optimiser; it should return one, and not null");
  if (recipe.ema > 0) made->keep_average(recipe.ema);
  return made;
}

std::vector<ArenaSpec> specs_of(std::span<const StateArena> state) {
  return {state.begin(), state.end()};
}

const nn::Parameter* sampled_of(const nn::Parameters& parameters) {
  for (const nn::Parameter* parameter : parameters.registry().parameters) {
    if (parameter->sampling) return parameter;
  }
  return nullptr;
}

Optimizer::Optimizer(Device& device, const nn::Parameters& parameters,
                     const std::vector<ArenaSpec>& arenas)
    : device_(device), parameters_(parameters) {
  for (const ArenaSpec& spec : arenas) add_arena(spec);
}

Optimizer::~Optimizer() = default;

void Optimizer::add_arena(const ArenaSpec& spec) {
  std::int64_t count = parameters_.plan().elements;
  if (spec.is_of_buffers()) count = parameters_.buffers().count();
  if (spec.is_of_rows()) {
    count = parameters_.registry().parameters[static_cast<std::size_t>(spec.rows_of)]->rows.size();
  }
  state_.emplace_back(spec, Tensor(device_, {count}));
  fill(device_.compute(), 0, state_.back().numbers);
}

void Optimizer::keep_average(double decay) {
  require(average_ == nullptr, "Optimizer::keep_average", "the weights are averaged already");
  add_arena(WeightAverage::kWeights);
  const View weights = state_.back().numbers;
  View buffers;
  if (!parameters_.registry().buffers.empty()) {
    add_arena({WeightAverage::kBuffers, ArenaSpec::kBuffers});
    buffers = state_.back().numbers;
  }
  average_ = std::make_unique<WeightAverage>(device_, parameters_, decay, weights, buffers);
}

StepRates Optimizer::rates_with_head(const Rates& rates, double head_lr) const {
  StepRates all = rates_of(rates);
  Rates of_head = rates;
  of_head.lr = head_lr;
  const StepRates head = rates_of(of_head);
  auto to = std::copy_n(head.begin(), 2, all.begin() + kHeadRates);
  std::copy_n(head.begin() + kOwnRates, kNumbersOfOptimizer, to);
  return all;
}

ConstView Optimizer::Part::decays_of(const ConstView& table) const {
  if (table.absent()) return {};
  return table.slice(begin / kDecayBlock, decay_blocks(end));
}

ConstView Optimizer::gradients() const {
  return parameters_.gradients().slice(0, parameters_.plan().with_gradient());
}

}  // namespace ringlet::train
