#include "train/optimizers/sgd.h"

#include "kernels/row_updates.h"
#include "kernels/sgd.h"
#include "train/optimizers/no_decay.h"

namespace ringlet::train {

namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(Device& device, const nn::Parameters& parameters, const Recipe& recipe)
      : Optimizer(device, parameters, {"velocity"}),
        spec_{static_cast<float>(recipe.weight_decay), recipe.nesterov},
        scales_(writes_gradient_scale(recipe)),
        decays_(recipe.weight_decay > 0
                    ? decay_table(device, parameters, parse_no_decay(recipe.no_decay))
                    : Tensor()) {}

  void step(ConstView rates) override {
    const ConstView own = rates.slice(0, 2);
    const auto scale_of = [this](const auto& part) { return scales_ ? part.scale : ConstView(); };
    for_each_part(
        rates,
        [&](const Part& part) {
          sgd_update(stream(), spec_, part.rate, part.of(values()), part.of(gradients()),
                     part.of(arena(0)), scale_of(part), part.decays_of(decays_));
        },
        [&](const SampledRows& rows) {
          sgd_update_rows(stream(), spec_, own, rows.listed, rows.of(values()), rows.gradient,
                          rows.of(arena(0)), scale_of(rows));
        });
  }

  bool has_head_rate() const override { return true; }
  bool scales_gradient() const override { return true; }
  bool skips_steps() const override { return true; }
  bool updates_rows() const override { return true; }

 private:
  SgdSpec spec_;
  bool scales_;
  Tensor decays_;
};

void check(const Recipe& recipe) {
  require(!recipe.nesterov || recipe.momentum > 0 || recipe.cycle_momentum, "--nesterov",
          "needs --momentum greater than 0");
}

}  // namespace

OptimizerEntry sgd_optimizer() {
  return {"sgd", check, [](Device& device, const nn::Parameters& parameters, const Recipe& recipe) {
            return std::make_unique<Sgd>(device, parameters, recipe);
          }};
}

}  // namespace ringlet::train
