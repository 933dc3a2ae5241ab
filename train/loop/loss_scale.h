// LossScale: the state of --precision f16's scale on the device (kernels/loss_scale.h).
#pragma once

#include <cstdint>

#include "kernels/memory.h"
#include "train/files/state_json.h"

namespace ringlet::train {

class LossScale {
 public:
  /// Skips in a row after which a run ends: the scale has long been at its floor then, or the
  /// numbers are broken at any scale.
  static constexpr int kMostSkips = 20;

  explicit LossScale(Device& device);

  /// f32 [kLossScaleState]
  View state() const { return state_; }
  void upload(const LossScaleState& state);
  LossScaleState download() const;

 private:
  Device& device_;
  Tensor state_;
};

}  // namespace ringlet::train
