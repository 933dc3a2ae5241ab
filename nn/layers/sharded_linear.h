// Fully connected layer without a bias, whose rows [O, I] are cut over the ranks that train
// together: a head of so many outputs that no rank shall have all of them. Its loss is
// nn::sharded_cross_entropy(). Where one rank has all rows it is a Linear.
#pragma once

#include "nn/layer.h"

namespace ringlet::nn {

class ShardedLinear : public Layer {
 public:
  /// PyTorch's default initialisation.
  ShardedLinear(std::int64_t in_features, std::int64_t out_features);

  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
  void register_in(Registry& registry, const std::string& prefix) override;

 private:
  Parameter weight_;
};

}  // namespace ringlet::nn
