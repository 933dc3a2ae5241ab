// StageSums: what a step tells of all stages of a model, where each rank has the sums of its own
// stage. A replica's stages meet over the stage axis, once a step, behind the last bucket.
//
// Each stage's sum of squares is a double, and travels as one: the gradient's norm is that of the
// whole model, on every rank alike. Statistics that only one stage has (loss, samples) keep their
// bits: the others are zeros.
#pragma once

#include "comm/communicator.h"
#include "kernels/device.h"
#include "kernels/l2_norm.h"
#include "kernels/memory.h"
#include "train/sync/meeting.h"

namespace ringlet::train {

class StageSums {
 public:
  /// `numbers`: of the statistics. Both outlive this.
  StageSums(Device& device, comm::Communicator& stages, std::int64_t numbers);

  /// statistics (f32 [numbers]) = their sum over the stages; norm (f32 [1]) and `limit` as
  /// l2_norm() of the gradients of all stages, of which this one has `gradients`. Collective.
  void add(View statistics, ConstView gradients, View norm, const NormLimit& limit);

 private:
  Device& device_;
  comm::Communicator& stages_;
  Meeting meeting_;
  Tensor all_;      // f32 [stages, numbers]
  Tensor square_;   // a double
  Tensor squares_;  // [stages] of them
};

}  // namespace ringlet::train
