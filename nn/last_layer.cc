#include "nn/last_layer.h"

#include <algorithm>

namespace ringlet::nn {

namespace {

/// "layer1.0.conv1" of "layer1.0.conv1.weight"; empty where one layer is the whole model.
std::string layer_of(const std::string& name) {
  const auto point = name.rfind('.');
  return point == std::string::npos ? std::string() : name.substr(0, point);
}

}  // namespace

LastLayer::LastLayer(const Registry& registry) {
  for (const Parameter* parameter : registry.parameters) {
    const bool has_outputs = parameter->shape.rank() >= 2;
    const bool comes_first = weight_ == nullptr || weight_->shape.rank() < 2;
    if (!parameter->of_loss && (has_outputs || comes_first)) weight_ = parameter;
  }
  if (weight_ == nullptr) return;
  name_ = layer_of(weight_->name);
  const auto first = std::ranges::find_if(registry.parameters, [this](const auto* parameter) {
    return layer_of(parameter->name) == name_;
  });
  first_ = (*first)->id;
  if (name_.empty()) name_ = weight_->name;
}

bool LastLayer::has(const std::string& name, int behind) const {
  return weight_ != nullptr && (behind > first_ || layer_of(name) == name_);
}

}  // namespace ringlet::nn
