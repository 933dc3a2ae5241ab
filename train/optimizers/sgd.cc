#include "train/optimizers/sgd.h"

#include "kernels/sgd.h"

namespace ringlet::train {

namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(Device& device, const nn::Parameters& parameters, const Recipe& recipe)
      : Optimizer(device, parameters, {"velocity"}),
        spec_{static_cast<float>(recipe.weight_decay), recipe.nesterov} {}

  void step(ConstView rates) override {
    sgd_update(stream(), spec_, rates, values(), gradients(), arena(0));
  }

 private:
  SgdSpec spec_;
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
