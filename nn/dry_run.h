// DryRun: a meta device on which every parameter of a model has a view that is never touched.
// Operations check their contracts there and count their cost, and compute nothing.
#pragma once

#include <vector>

#include "kernels/meta_device.h"
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

  /// A value from outside: a batch, labels, the seed of backward.
  View external(const Shape& shape, DType dtype, Layout layout);

  MetaDevice device;

 private:
  const Registry& registry_;
  std::vector<View> views_;  // that parameters and buffers had before
};

}  // namespace ringlet::nn
