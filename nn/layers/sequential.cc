#include "nn/layers/sequential.h"

#include <span>

#include "base/error.h"

namespace ringlet::nn {

namespace {

/// Runs the first layer, or several as one.
Fused run(Tape& tape, const Variable& x, std::span<const Child> layers) {
  if (tape.context().fuse) {
    const Fused fused = fuse(tape, x, layers);
    if (fused.layers > 0) return fused;
  }
  return {layers.front().layer->forward(tape, x), 1};
}

}  // namespace

Variable Sequential::forward(Tape& tape, const Variable& x) {
  Variable value = x;
  for (std::span<const Child> rest(children_); !rest.empty();) {
    const Tape::Scope scope(tape, rest.front().name);
    try {
      const Fused done = run(tape, value, rest);
      value = done.y;
      rest = rest.subspan(done.layers);
    } catch (const ContractError& error) {
      throw ContractError("layer " + rest.front().name + ": " + error.what(), error.where());
    }
  }
  return value;
}

void Sequential::register_in(Registry& registry, const std::string& prefix) {
  for (const Child& child : children_) {
    child.layer->register_in(registry, prefix + child.name + ".");
  }
}

}  // namespace ringlet::nn
