// Sequential: layers one after the other, each under its name. Neighbours that one operation
// computes faster run as one (fusion.h), unless the step says otherwise (StepContext::fuse).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/layer.h"
#include "nn/layers/fusion.h"

namespace ringlet::nn {

class Sequential : public Layer {
 public:
  /// Adds a layer; returns it. The name is the prefix of its parameters and its name in traces.
  template <class L, class... Arguments>
  L& add(std::string name, Arguments&&... arguments) {
    auto layer = std::make_unique<L>(std::forward<Arguments>(arguments)...);
    L& reference = *layer;
    children_.push_back({std::move(name), std::move(layer)});
    return reference;
  }

  /// x itself where there is no layer.
  Variable forward(Tape& tape, const Variable& x) override;
  void register_in(Registry& registry, const std::string& prefix) override;

 private:
  std::vector<Child> children_;
};

}  // namespace ringlet::nn
