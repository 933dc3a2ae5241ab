// The block of a residual network, with the names of torchvision's BasicBlock and Bottleneck:
//
//   y = ReLU( norm(body(x)) + downsample(x) )      or without the ReLU
//
// The layers of the body have names of their own choice in the block ("conv1", "bn1"), and the norm
// behind it has one too ("bn2"). A downsample without layers passes x on. The norm, the addition
// and the ReLU run as one operation, unless the step says otherwise (StepContext::fuse).
#pragma once

#include <string>
#include <utility>

#include "nn/layers/batch_norm2d.h"
#include "nn/layers/sequential.h"

namespace ringlet::nn {

class ResidualBlock : public Layer {
 public:
  /// `last`: what stands behind the sum.
  ResidualBlock(std::string norm_name, int channels, Activation last = Activation::relu)
      : norm_name_(std::move(norm_name)), norm_(channels), last_(last) {}

  Sequential& body() { return body_; }
  Sequential& downsample() { return downsample_; }

  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout layout) const override {
    return body_.takes(layout) && downsample_.takes(layout);
  }
  void register_in(Registry& registry, const std::string& prefix) override;

 private:
  Sequential body_;
  std::string norm_name_;
  BatchNorm2d norm_;
  Activation last_;
  Sequential downsample_;
};

}  // namespace ringlet::nn
