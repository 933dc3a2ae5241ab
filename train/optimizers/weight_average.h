// --ema: a moving average of the weights over the steps,
//
//   average += (1 - d) * (weights - average)      d = min(decay, (1 + t) / (10 + t))
//
// after each update, where t counts the optimiser's steps before it. The bound lets the average
// leave the start quickly; a step that f16 skips counts for nothing. The running statistics of
// batch norm are averaged alike, as torchvision's ExponentialMovingAverage(use_buffers=True) and
// timm's ModelEmaV2 do it: they belong to the weights of their time. Counters are not.
//
// Tests and the model's file have the average; training goes on with the weights. Whoever wants the
// average where the weights are swaps the two, and swaps them back. States are saved in between: a
// state's model is the average, and the arenas "trained" and "trained_buffers" of its optimiser are
// what training goes on with. In a run that goes on these arenas have the average.
#pragma once

#include <cstdint>

#include "kernels/memory.h"
#include "nn/parameters.h"

namespace ringlet::train {

class WeightAverage {
 public:
  /// Names of the arenas.
  static constexpr const char* kWeights = "trained";
  static constexpr const char* kBuffers = "trained_buffers";

  /// Device, parameters and the arenas outlive it. `weights`: as Parameters::values(); `buffers`:
  /// as Parameters::buffers(), absent where the model has none.
  WeightAverage(Device& device, const nn::Parameters& parameters, double decay, const View& weights,
                const View& buffers);

  /// 1 - d of the step behind `steps` others.
  double share_of(std::int64_t steps) const;

  /// The average becomes the weights as they are.
  void begin();
  /// Takes up the weights after an update. `share`: share_of() on the device, f32 [1]; `scale`: 0
  /// where the step was skipped, may be absent. Two launches at most, for a captured graph too.
  void update(const ConstView& share, const ConstView& scale);
  /// The average goes where the weights are, and they where it was.
  void swap();

 private:
  void swap(const View& one, const View& other);

  Device& device_;
  const nn::Parameters& parameters_;
  double decay_;
  View weights_, buffers_;
  Tensor aside_;  // f32: a part of one of them, while the two are swapped
};

}  // namespace ringlet::train
