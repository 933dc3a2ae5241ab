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

void DataAxis::begin(std::span<const std::int64_t> samples, std::int64_t most, int pass) {
  require(std::ssize(samples) > std::int64_t{pass} * position_.ranks &&
              std::ssize(samples) % position_.ranks == 0,
          "DataAxis::begin",
          "a pass with rows that are cut over ranks is told the samples of each");
  samples_.assign(samples.begin(), samples.end());
  most_ = most;
  pass_ = pass;
  rehearses_ = false;
}

void DataAxis::begin_rehearsal(std::int64_t samples, std::int64_t most) {
  pass_ = position_.passes() - 1;
  samples_.assign(static_cast<std::size_t>(position_.passes() * position_.ranks), samples);
  most_ = most;
  rehearses_ = true;
}

std::int64_t DataAxis::samples_in(int pass, int rank) const {
  return samples_[static_cast<std::size_t>(pass * position_.ranks + rank)];
}

bool DataAxis::is_last() const {
  const auto later = samples_.begin() + std::ptrdiff_t{pass_ + 1} * position_.ranks;
  return std::all_of(later, samples_.end(), [](std::int64_t samples) { return samples == 0; });
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
  if (position_.ranks == 1) return;
  if (rehearses_) return meeting_.rehearse(numbers);
  meeting_.hold(compute, [&](Stream& stream) { communicator_.all_reduce(stream, numbers, name); });
}

void DataAxis::sum_own(Stream& compute, View numbers, const char* name) {
  require(numbers.count() % (position_.ranks * kGrain) == 0, "DataAxis::sum_own",
          "the parts are equal, and multiples of 32 numbers");
  if (position_.shards > 0) return sum(compute, numbers, name);
  if (position_.ranks == 1) return;
  if (rehearses_) return meeting_.rehearse(numbers);
  meeting_.hold(compute,
                [&](Stream& stream) { communicator_.reduce_scatter(stream, numbers, name); });
}

}  // namespace ringlet::train
