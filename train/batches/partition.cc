#include "train/batches/partition.h"

#include <algorithm>

namespace ringlet::train {

Range part_of(const Range& range, std::int64_t parts, std::int64_t index) {
  const std::int64_t small = range.size() / parts, larger = range.size() % parts;
  const std::int64_t begin = range.begin + index * small + std::min(index, larger);
  return {begin, begin + small + (index < larger ? 1 : 0)};
}

Range Partition::step_range(std::int64_t step) const {
  const std::int64_t begin = step % steps_per_epoch() * batch_size;
  return {begin, begin + std::min(batch_size, size - begin)};
}

Range Partition::shards_of(int rank) const { return part_of({0, shards}, ranks, rank); }

Range Partition::rank_range(std::int64_t step, int rank) const {
  const Range range = step_range(step), owned = shards_of(rank);
  return {part_of(range, shards, owned.begin).begin, part_of(range, shards, owned.end - 1).end};
}

std::int64_t Partition::units(int rank) const {
  return (exact ? shards_of(rank).size() : 1) * accumulate;
}

data::BatchRequest Partition::unit(std::int64_t step, int rank, std::int64_t unit) const {
  const Range whole =
      exact ? part_of(step_range(step), shards, shards_of(rank).begin + unit / accumulate)
            : rank_range(step, rank);
  const Range range = part_of(whole, accumulate, unit % accumulate);
  return {epoch_of(step), range.begin, range.end};
}

std::int64_t Partition::max_unit(int rank) const {
  std::int64_t largest = 1;
  for (std::int64_t u = 0; u < units(rank); ++u) {
    largest = std::max(largest, unit(0, rank, u).size());
  }
  return largest;
}

}  // namespace ringlet::train
