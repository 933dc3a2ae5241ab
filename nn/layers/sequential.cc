#include "nn/layers/sequential.h"

#include "kernels/error.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/stateless.h"
#include "nn/ops/conv2d.h"
#include "nn/ops/conv2d_relu_avg_pool2d.h"
#include "nn/ops/linear.h"

namespace ringlet::nn {

Variable Sequential::forward(Tape& tape, const Variable& x) {
  Variable value = x;
  for (std::size_t i = 0; i < children_.size();) {
    const Tape::Scope scope(tape, children_[i].name);
    try {
      i += run(tape, i, value);
    } catch (const ContractError& error) {
      throw ContractError("layer " + children_[i].name + ": " + error.what(), error.where());
    }
  }
  return value;
}

std::size_t Sequential::run(Tape& tape, std::size_t index, Variable& x) {
  const bool relu_follows = fuse_ && child_as<ReLU>(index + 1) != nullptr;
  if (auto* conv = child_as<Conv2d>(index); conv != nullptr && relu_follows) {
    const Variable w = conv->weight(tape), b = conv->bias(tape);
    const auto* pool = child_as<AvgPool2d>(index + 2);
    if (pool != nullptr && fuses_conv2d_relu_avg_pool2d(x, conv->spec(), pool->spec())) {
      x = conv2d_relu_avg_pool2d(x, w, b, conv->spec());
      return 3;
    }
    x = conv2d(x, w, b, conv->spec(), Activation::relu);
    return 2;
  }
  if (auto* linear_layer = child_as<Linear>(index); linear_layer != nullptr && relu_follows) {
    x = linear(x, linear_layer->weight(tape), linear_layer->bias(tape), Activation::relu);
    return 2;
  }
  x = children_[index].layer->forward(tape, x);
  return 1;
}

void Sequential::register_in(Registry& registry, const std::string& prefix) {
  for (const Child& child : children_) {
    child.layer->register_in(registry, prefix + child.name + ".");
  }
}

}  // namespace ringlet::nn
