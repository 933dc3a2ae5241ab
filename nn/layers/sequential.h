// Sequential: layers one after the other, each under its name. Neighbours that one operation
// computes faster run as one (fusion.h), unless the step says otherwise (StepContext::fuse).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
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
  bool takes(Layout layout) const override;
  void register_in(Registry& registry, const std::string& prefix) override;

  std::span<const Child> children() const { return children_; }

 private:
  std::vector<Child> children_;
};

// What a Sequential is made of, for whoever runs a part of it (nn/stages/stages.h).

/// Calls body() as a part of the layer `name`: what is recorded belongs to it, and a ContractError
/// names it. The name must outlive the tape's step.
template <class Body>
auto in_layer(Tape& tape, const std::string& name, const Body& body) {
  const Tape::Scope scope(tape, name);
  try {
    return body();
  } catch (const ContractError& error) {
    throw ContractError("layer " + name + ": " + error.what(), error.where());
  }
}

/// Runs the first of `layers`, or several as one; there is one at least.
Fused run_first(Tape& tape, const Variable& x, std::span<const Child> layers);
/// Runs all of them; x itself where there is none.
Variable run_layers(Tape& tape, const Variable& x, std::span<const Child> layers);
void register_layers(Registry& registry, const std::string& prefix, std::span<const Child> layers);

}  // namespace ringlet::nn
