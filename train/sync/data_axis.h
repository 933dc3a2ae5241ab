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

  /// Pass `pass` of a step follows: samples by pass and, in each, by rank, and the most that any
  /// rank has in a pass.
  void begin(std::span<const std::int64_t> samples, std::int64_t most, int pass = 0);
  /// The same for passes without a collective (TrainStep::rehearse), in which all have as many.
  void begin_rehearsal(std::int64_t samples, std::int64_t most);

  const nn::AxisPosition& position() const override { return position_; }
  std::int64_t samples(int rank) const override { return samples_in(pass_, rank); }
  int pass() const override { return pass_; }
  bool is_last() const override;
  std::int64_t samples_in(int pass, int rank) const override;
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
  std::vector<std::int64_t> samples_;  // by pass, then by rank
  int pass_ = 0;
  std::int64_t most_ = 0;
  bool rehearses_ = false;
};

}  // namespace ringlet::train
