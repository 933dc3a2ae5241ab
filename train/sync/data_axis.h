// DataAxis: the data axis as operations on rows that are cut over its ranks see it (nn/axis.h),
// over the communicator. Its collectives go over the communication stream, in backward between the
// gradients' buckets, in one order on every rank: a rank without samples runs the model on a
// stand-in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/axis.h"
#include "train/sync/meeting.h"

namespace ringlet::train {

class DataAxis : public nn::Axis {
 public:
  DataAxis(Device& device, comm::Communicator& communicator, const nn::AxisPosition& position);

  /// The pass that follows: its samples by rank, and the most that any has in such a pass.
  void begin(std::span<const std::int64_t> samples, std::int64_t most);
  /// The same for passes without a collective (TrainStep::rehearse), in which all have as many.
  void begin_rehearsal(std::int64_t samples, std::int64_t most);

  const nn::AxisPosition& position() const override { return position_; }
  std::int64_t samples(int rank) const override { return samples_[static_cast<std::size_t>(rank)]; }
  std::int64_t most() const override { return most_; }
  void gather(Stream& compute, ConstView mine, View all, const char* name) override;
  void exchange(Stream& compute, ConstView out, View in, const char* name) override;
  void sum(Stream& compute, View numbers, const char* name) override;
  /// In exact mode as sum(): a reduce-scatter adds in another order.
  void sum_own(Stream& compute, View numbers, const char* name) override;

 private:
  comm::Communicator& communicator_;
  nn::AxisPosition position_;
  Meeting meeting_;
  std::vector<std::int64_t> samples_;  // by rank
  std::int64_t most_ = 0;
  bool rehearses_ = false;
};

}  // namespace ringlet::train
