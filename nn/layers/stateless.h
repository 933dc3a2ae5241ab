// Layers without parameters: each hands its input to the operation of the same name.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/pool2d.h"
#include "nn/layer.h"

namespace ringlet::nn {

class ReLU : public Layer {
 public:
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
};

class Sigmoid : public Layer {
 public:
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
};

class Tanh : public Layer {
 public:
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
};

class AvgPool2d : public Layer {
 public:
  explicit AvgPool2d(const Pool2dSpec& spec) : spec_(spec) {}
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
  const Pool2dSpec& spec() const { return spec_; }

 private:
  Pool2dSpec spec_;
};

class MaxPool2d : public Layer {
 public:
  explicit MaxPool2d(const Pool2dSpec& spec) : spec_(spec) {}
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }

 private:
  Pool2dSpec spec_;
};

/// The average of each channel, [N, C, H, W] -> [N, C, 1, 1], for images of any size: PyTorch's
/// AdaptiveAvgPool2d(1).
class AdaptiveAvgPool2d : public Layer {
 public:
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
};

/// [N, C, H, W] -> [N, C * H * W], in C, H, W order whatever the layout.
class Flatten : public Layer {
 public:
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
};

/// The same numbers as f32, where the model's activations are narrow.
class InF32 : public Layer {
 public:
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
};

/// Identity outside training.
class Dropout : public Layer {
 public:
  explicit Dropout(float probability) : probability_(probability) {}
  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout /*layout*/) const override { return true; }
  /// Has no parameters, but registration tells it its name, which keys its random numbers.
  void register_in(Registry& registry, const std::string& prefix) override;

 private:
  float probability_;
  std::optional<std::uint64_t> name_hash_;
};

}  // namespace ringlet::nn
