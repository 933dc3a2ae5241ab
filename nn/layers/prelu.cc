#include "nn/layers/prelu.h"

#include "nn/ops/prelu.h"

namespace ringlet::nn {

PReLU::PReLU(int slopes, float start) : weight_({slopes}, Initializer::constant(start)) {}

Variable PReLU::forward(Tape& tape, const Variable& x) { return prelu(x, tape.parameter(weight_)); }

void PReLU::register_in(Registry& registry, const std::string& prefix) {
  registry.add(weight_, prefix + "weight");
}

}  // namespace ringlet::nn
