#include "nn/layers/linear.h"

#include "nn/ops/linear.h"

namespace ringlet::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features)
    : Linear(in_features, out_features, Initializer::torch_default(in_features),
             Initializer::torch_default(in_features)) {}

Linear::Linear(std::int64_t in_features, std::int64_t out_features, Initializer weight,
               Initializer bias)
    : weight_({out_features, in_features}, weight), bias_({out_features}, bias) {}

Variable Linear::forward(Tape& tape, const Variable& x) {
  return linear(x, weight(tape), bias(tape));
}

void Linear::register_in(Registry& registry, const std::string& prefix) {
  registry.add(weight_, prefix + "weight");
  registry.add(bias_, prefix + "bias");
}

}  // namespace ringlet::nn
