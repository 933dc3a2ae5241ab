#include "nn/layers/batch_norm2d.h"

namespace ringlet::nn {

BatchNorm2d::BatchNorm2d(int channels, const BatchNorm2dOptions& options)
    : options_(options),
      weight_({channels}, Initializer::constant(1), ParameterKind::norm),
      bias_({channels}, Initializer::zeros(), ParameterKind::norm),
      ones_({channels}, 1),
      running_(channels) {
  ones_.stays = true;
}

Variable BatchNorm2d::forward(Tape& tape, const Variable& x, const Variable& residual,
                              Activation activation) {
  const bool learns_weight = options_.affine && !options_.weight_is_one;
  const Variable weight = learns_weight ? tape.parameter(weight_) : Variable();
  const Variable bias = options_.affine ? tape.parameter(bias_) : Variable();
  return batch_norm(x, weight, bias, running_, options_.spec, residual, activation);
}

void BatchNorm2d::register_in(Registry& registry, const std::string& prefix) {
  if (options_.affine) {
    if (options_.weight_is_one) {
      registry.add(ones_, prefix + "weight");
    } else {
      registry.add(weight_, prefix + "weight");
    }
    registry.add(bias_, prefix + "bias");
  }
  registry.add(running_, prefix);
}

}  // namespace ringlet::nn
