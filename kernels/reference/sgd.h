// The optimiser of kernels/sgd.h, said as plainly as possible; T is float or double.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/sgd.h"

namespace ringlet::reference {

template <class T>
void sgd_update(const SgdSpec& spec, T learning_rate, T momentum, std::vector<T>& value,
                const std::vector<T>& gradient, std::vector<T>& velocity) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    const T g = gradient[i] + static_cast<T>(spec.weight_decay) * value[i];
    velocity[i] = momentum * velocity[i] + g;
    value[i] -= learning_rate * (spec.nesterov ? g + momentum * velocity[i] : velocity[i]);
  }
}

}  // namespace ringlet::reference
