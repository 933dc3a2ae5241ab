// Batch normalisation of [N, C, H, W]: parameters weight [C] (1) and bias [C] (0), PyTorch's names,
// and its buffers running_mean, running_var and num_batches_tracked. Of [N, C] it is PyTorch's
// BatchNorm1d.
#pragma once

#include "nn/layer.h"
#include "nn/ops/batch_norm.h"

namespace ringlet::nn {

struct BatchNorm2dOptions {
  BatchNormSpec spec{};
  bool affine = true;          ///< has weight and bias
  bool weight_is_one = false;  ///< and stays so: it stands in files, and is a buffer
};

class BatchNorm2d : public Layer {
 public:
  explicit BatchNorm2d(int channels, const BatchNorm2dOptions& options = {});

  Variable forward(Tape& tape, const Variable& x) override { return forward(tape, x, {}, {}); }
  bool takes(Layout /*layout*/) const override { return true; }
  /// With what stands behind it, as one operation; `residual` may be absent.
  Variable forward(Tape& tape, const Variable& x, const Variable& residual, Activation activation);
  void register_in(Registry& registry, const std::string& prefix) override;

 private:
  BatchNorm2dOptions options_;
  Parameter weight_;
  Parameter bias_;
  StateBuffer ones_;  // in the weight's place
  RunningStatistics running_;
};

}  // namespace ringlet::nn
