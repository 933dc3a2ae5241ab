#include "nn/layers/sharded_linear.h"

#include "nn/ops/sharded_linear.h"

namespace ringlet::nn {

ShardedLinear::ShardedLinear(std::int64_t in_features, std::int64_t out_features)
    : weight_({out_features, in_features}, Initializer::torch_default(in_features)) {
  weight_.placement = Placement::rows;
}

Variable ShardedLinear::forward(Tape&, const Variable& x) { return sharded_linear(x, weight_); }

void ShardedLinear::register_in(Registry& registry, const std::string& prefix) {
  registry.add(weight_, prefix + "weight");
}

}  // namespace ringlet::nn
