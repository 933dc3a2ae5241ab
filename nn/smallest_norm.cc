#include "nn/smallest_norm.h"

#include <algorithm>

#include "nn/cross_replica.h"
#include "nn/dry_run.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// Hears of every batch norm's input, as a world of replicas would.
class Listener : public CrossReplica {
 public:
  std::int64_t samples() const override { return 2; }
  bool counts() const override { return true; }
  void merge_moments(Stream&, ConstView, std::int64_t pixels, View) override {
    smallest = smallest == 0 ? pixels : std::min(smallest, pixels);
  }
  void sum(Stream&, View) override {}

  std::int64_t smallest = 0;
};

}  // namespace

std::int64_t smallest_normed(const Registry& registry, const BatchSpec& spec, const Pass& pass,
                             bool fuse) {
  DryRun run(registry, spec.activations, spec.images);
  Arena activations(run.device, Arena::kUnlimited);
  Tape tape(run.device, activations, registry.parameters);
  Listener listener;
  tape.begin({.fuse = fuse, .world = &listener, .axis = run.axis(spec.samples())});
  Batch batch(spec.activations);
  for (const TensorSpec& tensor : spec.tensors) {
    batch.add(tensor.name, tape.constant(run.external(tensor.shape, tensor.dtype, tensor.layout)));
  }
  pass(tape, batch);
  return listener.smallest;
}

}  // namespace ringlet::nn
