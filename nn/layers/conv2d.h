// Convolution layer: parameters weight [O, C/groups, KH, KW] and bias [O], PyTorch's names.
#pragma once

#include "kernels/conv2d.h"
#include "nn/layer.h"

namespace ringlet::nn {

struct Conv2dOptions {
  int in_channels = 1;
  int out_channels = 1;
  Extent2 kernel{3, 3};
  Conv2dSpec spec{};
  bool bias = true;
};

class Conv2d : public Layer {
 public:
  /// PyTorch's default initialisation, for weight and bias.
  explicit Conv2d(const Conv2dOptions& options);
  Conv2d(const Conv2dOptions& options, Initializer weight, Initializer bias);

  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
  void register_in(Registry& registry, const std::string& prefix) override;

  /// Whether one of weight and bias is frozen, and the other is not.
  bool is_frozen_in_part() const { return options_.bias && weight_.is_frozen != bias_.is_frozen; }
  const Conv2dSpec& spec() const { return options_.spec; }
  Variable weight(Tape& tape) { return tape.parameter(weight_); }
  /// Absent where the layer has no bias.
  Variable bias(Tape& tape) { return options_.bias ? tape.parameter(bias_) : Variable(); }

 private:
  Conv2dOptions options_;
  Parameter weight_;
  Parameter bias_;
};

}  // namespace ringlet::nn
