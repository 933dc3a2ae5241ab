#include "nn/layers/sequential.h"

#include <algorithm>

namespace ringlet::nn {

Fused run_first(Tape& tape, const Variable& x, std::span<const Child> layers) {
  return in_layer(tape, layers.front().name, [&]() -> Fused {
    if (tape.context().fuse) {
      const Fused fused = fuse(tape, x, layers);
      if (fused.layers > 0) return fused;
    }
    return {layers.front().layer->forward(tape, x), 1};
  });
}

Variable run_layers(Tape& tape, const Variable& x, std::span<const Child> layers) {
  Variable value = x;
  while (!layers.empty()) {
    const Fused done = run_first(tape, value, layers);
    value = done.y;
    layers = layers.subspan(done.layers);
  }
  return value;
}

void register_layers(Registry& registry, const std::string& prefix, std::span<const Child> layers) {
  for (const Child& child : layers) {
    child.layer->register_in(registry, prefix + child.name + ".");
  }
}

Variable Sequential::forward(Tape& tape, const Variable& x) {
  return run_layers(tape, x, children_);
}

bool Sequential::takes(Layout layout) const {
  return std::ranges::all_of(children_,
                             [layout](const Child& child) { return child.layer->takes(layout); });
}

void Sequential::register_in(Registry& registry, const std::string& prefix) {
  register_layers(registry, prefix, children_);
}

}  // namespace ringlet::nn
