// Partition: which positions of the data's order belong to which step, shard, rank and micro-batch.
//
//   epoch    positions 0 .. size-1, cut into steps of `batch_size` (the last one may be shorter)
//   step     cut into S logical shards, as equal as possible, the larger ones first
//   rank     owns a contiguous range of the shards
//   unit     what one forward and backward runs: in fast mode a rank's whole range, in exact mode
//            one shard; either is cut into `accumulate` micro-batches
//
// A pure function: every rank knows every other rank's share, so nothing about counts has to be
// communicated. Any part may be empty; a global batch may be smaller than S.
#pragma once

#include <cstdint>

#include "data/loader.h"

namespace ringlet::train {

/// Positions [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Part `index` of `parts` of a range: sizes differ by at most one, the larger ones first.
Range part_of(const Range& range, std::int64_t parts, std::int64_t index);

struct Partition {
  std::int64_t size = 1;        ///< samples of an epoch, at least 1
  std::int64_t batch_size = 1;  ///< of the whole world
  int shards = 1;               ///< S >= ranks
  int ranks = 1;
  int accumulate = 1;
  bool exact = false;

  std::int64_t steps_per_epoch() const { return (size - 1) / batch_size + 1; }
  /// Positions of optimiser step `step` (counted over all epochs), in its epoch.
  Range step_range(std::int64_t step) const;
  std::int64_t epoch_of(std::int64_t step) const { return step / steps_per_epoch(); }
  /// The shards that `rank` owns.
  Range shards_of(int rank) const;
  /// Positions of `rank` in a step.
  Range rank_range(std::int64_t step, int rank) const;
  /// Forward and backward passes of `rank` in each step.
  std::int64_t units(int rank) const;
  /// Positions of pass `unit` of `rank` in `step`.
  data::BatchRequest unit(std::int64_t step, int rank, std::int64_t unit) const;
  /// The largest unit of any step.
  std::int64_t max_unit(int rank) const;
};

}  // namespace ringlet::train
