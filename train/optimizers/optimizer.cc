#include "train/optimizers/optimizer.h"

#include "kernels/elementwise.h"

namespace ringlet::train {

Sgd::Sgd(Device& device, const nn::Parameters& parameters, const SgdSpec& spec)
    : device_(device),
      parameters_(parameters),
      spec_(spec),
      velocity_(device, {parameters.plan().elements}) {
  fill(device.compute(), 0, velocity_);
}

void Sgd::step(ConstView rates) {
  sgd_update(device_.compute(), spec_, rates, parameters_.values(),
             parameters_.gradients().slice(0, parameters_.plan().elements), velocity_);
}

}  // namespace ringlet::train
