// Concat: y = branch1(x), branch2(x), ... side by side along the channels, or features. A branch
// without layers passes x on. Parameters: the branch's name before the names of its layers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/layers/sequential.h"

namespace ringlet::nn {

class Concat : public Layer {
 public:
  /// At most kMostParts (nn/ops/concat.h).
  Sequential& add(const std::string& name);

  Variable forward(Tape& tape, const Variable& x) override;
  bool takes(Layout layout) const override;
  void register_in(Registry& registry, const std::string& prefix) override;

 private:
  std::vector<std::pair<std::string, std::unique_ptr<Sequential>>> branches_;
};

}  // namespace ringlet::nn
