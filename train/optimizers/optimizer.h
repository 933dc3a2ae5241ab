// Sgd: the optimiser over the whole parameter arena, one kernel a step (kernels/sgd.h).
#pragma once

#include "kernels/memory.h"
#include "kernels/sgd.h"
#include "nn/parameters.h"

namespace ringlet::train {

class Sgd {
 public:
  Sgd(Device& device, const nn::Parameters& parameters, const SgdSpec& spec);

  /// value -= lr * (...) with the gradients in arena 0, for all parameters. rates: f32 [2] on the
  /// device, learning rate and momentum.
  void step(ConstView rates);

  /// The momentum's velocity, f32 [plan.elements], in the order of the plan.
  View velocity() const { return velocity_; }

 private:
  Device& device_;
  const nn::Parameters& parameters_;
  SgdSpec spec_;
  Tensor velocity_;
};

}  // namespace ringlet::train
