#include "train/optimizers/adamw.h"

#include <cmath>

#include "kernels/adamw.h"
#include "train/optimizers/no_decay.h"

namespace ringlet::train {

namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(Device& device, const nn::Parameters& parameters, const Recipe& recipe)
      : Optimizer(device, parameters, {"exp_avg", "exp_avg_sq"}),
        recipe_(recipe),
        decays_(decay_table(device, parameters, parse_no_decay(recipe.no_decay))) {}

  void step(ConstView rates) override {
    const AdamWSpec spec{static_cast<float>(recipe_.beta2), static_cast<float>(1 - recipe_.beta2),
                         static_cast<float>(recipe_.eps)};
    for_each_part(rates, [&](const Part& part) {
      adamw_update(stream(), spec, rates.slice(kOwnRates, kOwnRates + 4), part.of(values()),
                   part.of(gradients()), part.of(arena(0)), part.of(arena(1)),
                   writes_gradient_scale(recipe_) ? part.scale : ConstView(),
                   part.decays_of(decays_));
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

  bool scales_gradient() const override { return true; }
  bool skips_steps() const override { return true; }

 private:
  Recipe recipe_;
  Tensor decays_;
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
