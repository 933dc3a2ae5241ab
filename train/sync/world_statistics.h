// WorldStatistics: the batch norm statistics of the whole world's batch (nn/cross_replica.h), over
// the communicator. Per layer and micro-batch
//
//   forward    an all-gather of 2 C + 1 numbers a rank, merged on each in the order of the ranks
//   backward   an all-reduce of 2 C sums
//
// Both go over the communication stream, between the gradients' buckets, in one order on every
// rank: a rank without samples runs the model on a stand-in.
#pragma once

#include <cstdint>

#include "kernels/memory.h"
#include "nn/cross_replica.h"
#include "nn/parameter.h"
#include "train/sync/meeting.h"

namespace ringlet::train {

class WorldStatistics : public nn::CrossReplica {
 public:
  /// For the layers of `registry`.
  WorldStatistics(Device& device, comm::Communicator& communicator, const nn::Registry& registry);

  /// The micro-batch that follows: samples in the world, and of this rank.
  void begin(std::int64_t world_samples, std::int64_t own_samples) {
    world_samples_ = world_samples;
    own_samples_ = own_samples;
  }
  /// Runs once what no other kind of batch norm does, without a collective (TrainStep::rehearse).
  void rehearse();

  std::int64_t samples() const override { return world_samples_; }
  bool counts() const override { return own_samples_ > 0; }
  void merge_moments(Stream& compute, ConstView part, std::int64_t pixels, View moments) override;
  void sum(Stream& compute, View numbers) override;

 private:
  Device& device_;
  comm::Communicator& communicator_;
  Tensor parts_;  // of all ranks, for the widest layer
  Meeting meeting_;
  std::int64_t world_samples_ = 0;
  std::int64_t own_samples_ = 0;
};

}  // namespace ringlet::train
