#include "nn/layer_visitor.h"

#include "kernels/error.h"
#include "nn/layers/sequential.h"

namespace ringlet::nn {

namespace {

/// Shows `layer` if it is an L.
template <class L>
bool shown(const std::string& name, const Layer& layer, LayerVisitor& visitor) {
  const auto* known = dynamic_cast<const L*>(&layer);
  if (known != nullptr) visitor.visit(name, *known);
  return known != nullptr;
}

template <class... Kinds>
bool shown_as_one_of(const std::string& name, const Layer& layer, LayerVisitor& visitor) {
  return (shown<Kinds>(name, layer, visitor) || ...);
}

void walk(const std::string& name, const Layer& layer, LayerVisitor& visitor) {
  if (const auto* layers = dynamic_cast<const Sequential*>(&layer)) {
    for (const Sequential::Child& child : layers->children()) {
      walk(name.empty() ? child.name : name + "." + child.name, *child.layer, visitor);
    }
    return;
  }
  if (shown_as_one_of<Conv2d, Linear, ReLU, AvgPool2d, MaxPool2d, Flatten, Dropout>(name, layer,
                                                                                    visitor)) {
    return;
  }
  throw ContractError("layer '" + name + "' is of a kind that LayerVisitor does not know");
}

}  // namespace

void visit_layers(const Layer& model, LayerVisitor& visitor) { walk("", model, visitor); }

}  // namespace ringlet::nn
