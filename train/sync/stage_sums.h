// StageSums: what a step tells of all stages of a model, where each rank has the sums of its own
// stage. A replica's stages meet over the stage axis, once a step, behind the last bucket.
//
// Numbers that only one stage has (loss, samples) keep their bits: the others are zeros.
#pragma once

#include "comm/communicator.h"
#include "kernels/device.h"
#include "kernels/memory.h"
#include "train/sync/meeting.h"

namespace ringlet::train {

class StageSums {
 public:
  /// `numbers`: of the statistics. Both outlive this.
  StageSums(Device& device, comm::Communicator& stages, std::int64_t numbers);

  /// statistics (f32 [numbers]) = their sum over the stages. Collective.
  void add(View statistics);

 private:
  Device& device_;
  comm::Communicator& stages_;
  Meeting meeting_;
  Tensor all_;  // f32 [stages, numbers]
};

}  // namespace ringlet::train
