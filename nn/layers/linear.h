// Fully connected layer: parameters weight [O, I] and bias [O], PyTorch's names.
#pragma once

#include "nn/layer.h"

namespace ringlet::nn {

class Linear : public Layer {
 public:
  /// PyTorch's default initialisation, for weight and bias.
  Linear(std::int64_t in_features, std::int64_t out_features);
  Linear(std::int64_t in_features, std::int64_t out_features, Initializer weight, Initializer bias);

  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
  void register_in(Registry& registry, const std::string& prefix) override;

  Variable weight(Tape& tape) { return tape.parameter(weight_); }
  Variable bias(Tape& tape) { return tape.parameter(bias_); }

 private:
  Parameter weight_;
  Parameter bias_;
};

}  // namespace ringlet::nn
