// PReLU: a parameter weight [channels], or [1] for all, which begins at 0.25. PyTorch's names.
#pragma once

#include "nn/layer.h"

namespace ringlet::nn {

class PReLU : public Layer {
 public:
  /// `slopes`: as many as there are channels, or one.
  explicit PReLU(int slopes = 1, float start = 0.25F);

  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
  void register_in(Registry& registry, const std::string& prefix) override;

 private:
  Parameter weight_;
};

}  // namespace ringlet::nn
