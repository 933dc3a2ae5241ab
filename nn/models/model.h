// The models that Ringlet knows by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/layer.h"

namespace ringlet::nn {

/// What a model is made for: images [N, channels, height, width] of `classes` classes.
struct ModelInput {
  int channels = 1;
  int height = 28;
  int width = 28;
  int classes = 10;
};

/// "lenet", "lenet-d2l", "mlp".
std::vector<std::string> model_names();

/// Makes the model `name`, its parameters without memory. Throws ContractError naming the known
/// models, or saying that the images are too small.
std::unique_ptr<Layer> make_model(std::string_view name, const ModelInput& input);

}  // namespace ringlet::nn
