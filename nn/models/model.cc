#include "nn/models/model.h"

#include "kernels/error.h"
#include "nn/models/lenet.h"
#include "nn/models/mlp.h"

namespace ringlet::nn {

namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Layer> (*make)(const ModelInput&);
};

constexpr Entry kModels[] = {
    {"lenet", [](const ModelInput& input) { return make_lenet(input, LeNetStart::practitioner); }},
    {"lenet-d2l", [](const ModelInput& input) { return make_lenet(input, LeNetStart::textbook); }},
    {"mlp", make_mlp},
};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kModels) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Layer> make_model(std::string_view name, const ModelInput& input) {
  std::string known;
  for (const Entry& entry : kModels) {
    if (name == entry.name) return entry.make(input);
    known += known.empty() ? entry.name : std::string(", ") + entry.name;
  }
  throw ContractError("there is no model '" + std::string(name) + "'; the models are " + known);
}

}  // namespace ringlet::nn
