// The models that Ringlet knows by name. models.cc has a line for each; what the command line says
// of models, its checks and its completion come from there, and so do their recipes
// (default_recipe in options.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/layer.h"
#include "nn/models/model.h"

namespace ringlet::train {

/// "lenet", "lenet-d2l", "mlp", "resnet18" and so on.
std::vector<std::string> model_names();

/// One line on the model `name`; for --help.
std::string model_help(std::string_view name);

/// The images that the model `name` was made for, and the numbers that it answers each with.
nn::ModelInput usual_input(std::string_view name);

/// Makes the model `name`, its parameters without memory. Throws ContractError naming the known
/// models, or saying that the images are too small.
std::unique_ptr<nn::Layer> make_model(std::string_view name, const nn::ModelInput& input);

}  // namespace ringlet::train
