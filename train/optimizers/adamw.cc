#include "train/optimizers/adamw.h"

#include <cmath>

#include "kernels/adamw.h"
#include "kernels/row_updates.h"
#include "train/optimizers/no_decay.h"

namespace ringlet::train {

namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(Device& device, const nn::Parameters& parameters, const Recipe& recipe)
      : Optimizer(device, parameters, arenas_of(parameters)),
        recipe_(recipe),
        decays_(decay_table(device, parameters, parse_no_decay(recipe.no_decay))) {
    const nn::Parameter* sampled = sampled_of(parameters);
    if (sampled != nullptr) corrections_ = Tensor(device, {sampled->room, 2});
  }

  void step(ConstView rates) override {
    const AdamWSpec spec{static_cast<float>(recipe_.beta2), static_cast<float>(1 - recipe_.beta2),
                         static_cast<float>(recipe_.eps)};
    const ConstView own = rates.slice(kOwnRates, kOwnRates + 4);
    const auto scale_of = [this](const auto& part) {
      return writes_gradient_scale(recipe_) ? part.scale : ConstView();
    };
    for_each_part(
        rates,
        [&](const Part& part) {
          adamw_update(stream(), spec, part.own, part.of(values()), part.of(gradients()),
                       part.of(arena(0)), part.of(arena(1)), scale_of(part),
                       part.decays_of(decays_));
        },
        [&](const SampledRows& rows) {
          adamw_count_rows(stream(), spec, rates.slice(0, 1), own, rows.listed, arena(2),
                           corrections_, scale_of(rows));
          adamw_update_rows(stream(), spec, own, rows.listed, rows.of(values()), rows.gradient,
                            rows.of(arena(0)), rows.of(arena(1)), scale_of(rows), corrections_);
        });
  }

  StepRates rates_of(const Rates& rates) const override {
    const bool cycles = recipe_.cycle_momentum && recipe_.schedule == ScheduleKind::one_cycle;
    const double beta1 = cycles ? rates.momentum : recipe_.beta1;
    const auto t = static_cast<double>(rates.step + 1);
    StepRates on_device = Optimizer::rates_of(rates);
    on_device[kOwnRates] = static_cast<float>(1 - beta1);
    on_device[kOwnRates + 1] = static_cast<float>(rates.lr * recipe_.weight_decay);
    on_device[kOwnRates + 2] = static_cast<float>(rates.lr / (1 - std::pow(beta1, t)));
    on_device[kOwnRates + 3] = static_cast<float>(1 / std::sqrt(1 - std::pow(recipe_.beta2, t)));
    return on_device;
  }

  bool has_head_rate() const override { return true; }
  bool scales_gradient() const override { return true; }
  bool skips_steps() const override { return true; }
  bool updates_rows() const override { return true; }

 private:
  /// Rows that are updated now and then count their steps themselves.
  static std::vector<ArenaSpec> arenas_of(const nn::Parameters& parameters) {
    std::vector<ArenaSpec> arenas = {"exp_avg", "exp_avg_sq"};
    const nn::Parameter* sampled = sampled_of(parameters);
    if (sampled != nullptr) arenas.emplace_back("steps", sampled->id);
    return arenas;
  }

  Recipe recipe_;
  Tensor decays_;
  Tensor corrections_;  // of the step's rows
};

/// PyTorch's defaults, instead of rates that suit SGD.
void set_adamw_defaults(Recipe& recipe) {
  recipe.lr = 1e-3;
  recipe.weight_decay = 1e-2;
  recipe.momentum = 0;
  recipe.nesterov = false;
}

}  // namespace

OptimizerEntry adamw_optimizer() {
  return {.name = "adamw",
          .make =
              [](Device& device, const nn::Parameters& parameters, const Recipe& recipe) {
                return std::make_unique<AdamW>(device, parameters, recipe);
              },
          .set_defaults = set_adamw_defaults};
}

}  // namespace ringlet::train
