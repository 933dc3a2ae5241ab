#include "train/optimizer.h"

#include <array>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"

namespace ringlet::train {

Sgd::Sgd(Device& device, const nn::Parameters& parameters, const SgdSpec& spec)
    : device_(device),
      parameters_(parameters),
      spec_(spec),
      velocity_(device, {parameters.plan().elements}),
      rates_(device, {2}) {
  fill(device.compute(), 0, velocity_);
}

void Sgd::step(const Rates& rates) {
  const std::array<float, 2> host{static_cast<float>(rates.lr), static_cast<float>(rates.momentum)};
  copy_from_host(device_.compute(), host.data(), rates_);
  sgd_update(device_.compute(), spec_, rates_, parameters_.values(),
             parameters_.gradients().slice(0, parameters_.plan().elements), velocity_);
}

}  // namespace ringlet::train
