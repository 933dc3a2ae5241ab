// Sequential: layers one after the other, each under its name.
//
// Neighbours that one fused kernel computes faster run as one: a convolution or linear layer with
// the ReLU behind it and, where the device has the kernel, with the average pooling behind that.
// The mathematics are the same; intermediate values are never written to memory.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/layer.h"

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
  /// Runs each layer by itself when false (for comparison; true by default).
  void set_fusion(bool fuse) { fuse_ = fuse; }

  Variable forward(Tape& tape, const Variable& x) override;
  void register_in(Registry& registry, const std::string& prefix) override;

  struct Child {
    std::string name;
    std::unique_ptr<Layer> layer;
  };
  const std::vector<Child>& children() const { return children_; }

 private:
  /// The child at `index`, seen as an L, or null.
  template <class L>
  L* child_as(std::size_t index) const {
    return index < children_.size() ? dynamic_cast<L*>(children_[index].layer.get()) : nullptr;
  }
  /// Runs the child at `index` and those that fuse with it; returns how many that were.
  std::size_t run(Tape& tape, std::size_t index, Variable& x);

  std::vector<Child> children_;
  bool fuse_ = true;
};

}  // namespace ringlet::nn
