// Residual block: y = body(x) + shortcut(x), where a shortcut without layers passes x on (He et
// al., CVPR 2016). Both must give values of one shape. Parameters: "body." and "shortcut." before
// the names of their layers.
#pragma once

#include "nn/layers/sequential.h"

namespace ringlet::nn {

class Residual : public Layer {
 public:
  Sequential& body() { return body_; }
  Sequential& shortcut() { return shortcut_; }

  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout layout) const override {
    return body_.takes(layout) && shortcut_.takes(layout);
  }
  void register_in(Registry& registry, const std::string& prefix) override;

 private:
  Sequential body_;
  Sequential shortcut_;
};

}  // namespace ringlet::nn
