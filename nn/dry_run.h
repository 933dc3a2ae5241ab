// DryRun: a meta device on which every parameter of a model has a view that is never touched.
// Operations check their contracts there and count their cost, and compute nothing.
#pragma once

#include <vector>

#include "kernels/meta_device.h"
#include "nn/axis.h"
#include "nn/parameter.h"

namespace ringlet::nn {

class DryRun {
 public:
  /// `activations`: their type, of which the parameters have values too where it is narrow.
  /// `images`: their layout, which decides about that of filters.
  explicit DryRun(const Registry& registry, DType activations = DType::f32,
                  Layout images = Layout::nchw);
  /// Gives the parameters and buffers the views that they had before.
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  /// A value from outside: a batch, targets, the seed of backward.
  View external(const Shape& shape, DType dtype, Layout layout);

  /// The ranks over which the registry's rows are cut, each with as many samples; null where this
  /// is the only one.
  Axis* axis(std::int64_t samples);

  MetaDevice device;

 private:
  /// Takes part in every meeting, and moves nothing.
  struct SilentAxis : Axis {
    const AxisPosition& position() const override { return at; }
    std::int64_t samples(int) const override { return of_each; }
    std::int64_t most() const override { return of_each; }
    void gather(Stream&, ConstView, View, const char*) override {}
    void exchange(Stream&, ConstView, View, const char*) override {}
    void sum(Stream&, View, const char*) override {}
    void sum_own(Stream&, View, const char*) override {}
    AxisPosition at;
    std::int64_t of_each = 0;
  };

  const Registry& registry_;
  SilentAxis axis_;
  std::vector<View> views_;                   // that parameters and buffers had before
  std::vector<std::vector<View>> gradients_;  // those by rank
};

}  // namespace ringlet::nn
