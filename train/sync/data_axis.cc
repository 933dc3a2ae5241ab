#include "train/sync/data_axis.h"

#include <algorithm>

#include "kernels/elementwise.h"

namespace ringlet::train {

DataAxis::DataAxis(Device& device, comm::Communicator& communicator,
                   const nn::AxisPosition& position)
    : communicator_(communicator),
      position_(position),
      meeting_(device, communicator),
      samples_(static_cast<std::size_t>(position.ranks)) {}

void DataAxis::begin(std::span<const std::int64_t> samples, std::int64_t most) {
  require(samples.size() == samples_.size(), "DataAxis::begin",
          "a pass with rows that are cut over ranks is told the samples of each");
  std::copy(samples.begin(), samples.end(), samples_.begin());
  most_ = most;
  rehearses_ = false;
}

void DataAxis::begin_rehearsal(std::int64_t samples, std::int64_t most) {
  std::fill(samples_.begin(), samples_.end(), samples);
  most_ = most;
  rehearses_ = true;
}

void DataAxis::gather(Stream& compute, ConstView mine, View all, const char* name) {
  if (position_.ranks == 1) return copy(compute, mine, all.reshaped(mine.shape()));
  if (rehearses_) {  // as if each had what this rank has: numbers that are none would spread
    const std::int64_t count = mine.count();
    const View slots = all.reshaped({position_.ranks * count});
    for (int rank = 0; rank < position_.ranks; ++rank) {
      copy(compute, mine.reshaped({count}), slots.slice(rank * count, (rank + 1) * count));
    }
    return;
  }
  meeting_.hold(compute,
                [&](Stream& stream) { communicator_.all_gather(stream, mine, all, name); });
}

void DataAxis::exchange(Stream& compute, ConstView out, View in, const char* name) {
  if (position_.ranks == 1 || rehearses_) return copy(compute, out, in);
  meeting_.hold(compute, [&](Stream& stream) { communicator_.all_to_all(stream, out, in, name); });
}

void DataAxis::sum(Stream& compute, View numbers, const char* name) {
  if (position_.ranks == 1 || rehearses_) return;
  meeting_.hold(compute, [&](Stream& stream) { communicator_.all_reduce(stream, numbers, name); });
}

void DataAxis::sum_own(Stream& compute, View numbers, const char* name) {
  require(numbers.count() % (position_.ranks * kGrain) == 0, "DataAxis::sum_own",
          "the parts are equal, and multiples of 32 numbers");
  if (position_.shards > 0) return sum(compute, numbers, name);
  if (position_.ranks == 1 || rehearses_) return;
  meeting_.hold(compute,
                [&](Stream& stream) { communicator_.reduce_scatter(stream, numbers, name); });
}

}  // namespace ringlet::train
