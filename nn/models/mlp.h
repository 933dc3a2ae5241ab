// A multilayer perceptron: flatten, linear 256, ReLU, linear 128, ReLU, linear to the outputs.
// The smallest model that has every part of the machinery but convolutions.
#pragma once

#include <memory>

#include "nn/models/model.h"

namespace ringlet::nn {

std::unique_ptr<Layer> make_mlp(const ModelInput& input);

}  // namespace ringlet::nn
