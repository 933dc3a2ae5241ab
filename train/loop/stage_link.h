// StageLink: the messages of a pipeline's program between the stages of one replica.
//
// A message's length follows from the samples of its micro-batch, which both sides know; of an
// empty one nothing goes. What comes lies in the pass of its micro-batch (micro-batch k in pass k
// mod the replica's passes), what goes is sent from there, as it lies in memory: no conversion, no
// copy but the transport's.
//
// On processors an exchange runs on the replica's thread, between its passes. On a GPU it runs on
// the communication stream, behind what the compute stream did before, and before what follows.
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.h"
#include "kernels/device.h"
#include "train/loop/replica.h"
#include "train/pipeline/program.h"
#include "train/pipeline/schedules.h"
#include "train/sync/meeting.h"

namespace ringlet::train {

class StageLink {
 public:
  /// All outlive this. `stages`: the replica's, each a rank.
  StageLink(Device& device, comm::Communicator& stages, Replica& replica);

  /// `samples`: of this replica's micro-batches in the step.
  void run(const Move& move, std::span<const std::int64_t> samples);

  /// For a chain of passes without backward, one at a time: what the stage before hands on of
  /// `samples` comes, and what this stage's pass 0 has made goes. Nothing at the model's ends.
  void receive(std::int64_t samples);
  void send();

  /// A number that the first stage says, from stage to stage: each is told it before it goes on.
  float pass_on(float number);

 private:
  bool is_first() const { return stages_.rank() == 0; }
  bool is_last() const { return stages_.rank() + 1 == stages_.size(); }
  /// `names`: what goes and comes, for the other side's check and for messages.
  void exchange(int to, ConstView out, int from, View in, const Move& names = {});

  Device& device_;
  comm::Communicator& stages_;
  Replica& replica_;
  Meeting meeting_;
  Tensor number_;
};

/// The programs of all stages, validated for `stage`. Of one stage a forward and a backward by
/// turns, whatever the schedule. Throws ContractError as the three below do.
Pipeline pipeline_for(int stage, PipelineSchedule schedule, int stages, int micro_batches,
                      bool recompute);

/// Throws ContractError unless a message comes to `stage` only when what came to its pass before,
/// of an earlier micro-batch, is read no more: `pipeline.held(stage)` passes take turns.
void require_room_for_messages(const Pipeline& pipeline, int stage);

/// Throws ContractError unless `stage` sends what a pass has made before its next pass runs: where
/// passes share their activations, that overwrites it.
void require_sent_at_once(const Pipeline& pipeline, int stage);

}  // namespace ringlet::train
