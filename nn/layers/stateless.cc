#include "nn/layers/stateless.h"

#include "nn/cast.h"
#include "nn/initializer.h"
#include "nn/ops/dropout.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/flatten.h"
#include "nn/ops/pool2d.h"

namespace ringlet::nn {

Variable ReLU::forward(Tape&, const Variable& x) { return relu(x); }

Variable Sigmoid::forward(Tape&, const Variable& x) { return sigmoid(x); }

Variable Tanh::forward(Tape&, const Variable& x) { return tanh(x); }

Variable AvgPool2d::forward(Tape&, const Variable& x) { return avg_pool2d(x, spec_); }

Variable MaxPool2d::forward(Tape&, const Variable& x) { return max_pool2d(x, spec_); }

Variable AdaptiveAvgPool2d::forward(Tape&, const Variable& x) {
  require(x.shape().rank() == 4, "AdaptiveAvgPool2d", "the input should be [N, C, H, W]");
  const Extent2 all{static_cast<int>(x.shape()[2]), static_cast<int>(x.shape()[3])};
  return avg_pool2d(x, {.kernel = all, .stride = all});
}

Variable Flatten::forward(Tape&, const Variable& x) { return flatten(x); }

Variable InF32::forward(Tape&, const Variable& x) { return cast(x, DType::f32); }

Variable Dropout::forward(Tape& tape, const Variable& x) {
  if (!tape.context().training) return x;
  require(name_hash_.has_value(), "Dropout",
          "has no name, which keys its random numbers; call its register_in() in that of the layer "
          "that has it");
  return dropout(x, probability_, *name_hash_);
}

void Dropout::register_in(Registry& registry, const std::string& prefix) {
  registry.add_random(prefix);
  name_hash_ = hash_of(prefix);
}

}  // namespace ringlet::nn
