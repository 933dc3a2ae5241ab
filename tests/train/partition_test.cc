// Which samples belong to whom: every sample once, in order, for all numbers of ranks.
#include "train/batches/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ringlet::train {
namespace {

std::vector<std::int64_t> shares(const Partition& partition, std::int64_t step) {
  std::vector<std::int64_t> sizes;
  for (int rank = 0; rank < partition.ranks; ++rank) {
    sizes.push_back(partition.rank_range(step, rank).size());
  }
  return sizes;
}

/// The units of all ranks in order are the step's positions, without a gap or an overlap.
void expect_every_sample_once(const Partition& partition) {
  for (std::int64_t step = 0; step < 2 * partition.steps_per_epoch(); ++step) {
    const Range range = partition.step_range(step);
    std::int64_t next = range.begin;
    for (int rank = 0; rank < partition.ranks; ++rank) {
      EXPECT_EQ(partition.rank_range(step, rank).begin, next);
      for (std::int64_t u = 0; u < partition.units(rank); ++u) {
        const data::BatchRequest unit = partition.unit(step, rank, u);
        EXPECT_EQ(unit.begin, next) << "step " << step << " rank " << rank << " unit " << u;
        EXPECT_EQ(unit.epoch, step / partition.steps_per_epoch());
        EXPECT_LE(unit.size(), partition.max_unit(rank));
        next = unit.end;
      }
    }
    EXPECT_EQ(next, range.end) << "step " << step;
  }
}

TEST(Partition, EverySampleOnce) {
  for (const std::int64_t size : {1, 7, 96, 608}) {
    for (const std::int64_t batch : {1, 3, 15, 16, 17, 256}) {
      for (const int ranks : {1, 2, 3, 4}) {
        for (const int accumulate : {1, 2, 3}) {
          expect_every_sample_once({size, batch, ranks, ranks, accumulate, false});
          expect_every_sample_once({size, batch, 8, ranks, accumulate, false});
          if (ranks != 3) expect_every_sample_once({size, batch, 8, ranks, accumulate, true});
        }
      }
    }
  }
}

TEST(Partition, SharesDifferByOneAtMost) {
  const Partition partition{608, 256, 3, 3, 1, false};
  EXPECT_EQ(shares(partition, 0), (std::vector<std::int64_t>{86, 85, 85}));
  EXPECT_EQ(shares(partition, 2), (std::vector<std::int64_t>{32, 32, 32}));  // the last 96
  EXPECT_EQ(shares({3, 3, 4, 4, 1, false}, 0), (std::vector<std::int64_t>{1, 1, 1, 0}));
}

TEST(Partition, ExactModesShardsDoNotDependOnTheRanks) {
  const auto shards = [](int ranks) {
    const Partition partition{300, 61, 8, ranks, 2, true};
    std::vector<data::BatchRequest> all;
    for (std::int64_t step = 0; step < 5; ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        for (std::int64_t u = 0; u < partition.units(rank); ++u) {
          all.push_back(partition.unit(step, rank, u));
        }
      }
    }
    return all;
  };
  EXPECT_EQ(shards(1).size(), 5u * 8 * 2);
  for (const int ranks : {2, 4, 8}) EXPECT_EQ(shards(ranks), shards(1));
}

TEST(Partition, TheLastStepOfAnEpochIsShorter) {
  const Partition partition{100, 32, 1, 1, 1, false};
  EXPECT_EQ(partition.steps_per_epoch(), 4);
  EXPECT_EQ(partition.step_range(3), (Range{96, 100}));
  EXPECT_EQ(partition.step_range(4), (Range{0, 32}));
  EXPECT_EQ(partition.epoch_of(3), 0);
  EXPECT_EQ(partition.epoch_of(4), 1);
}

}  // namespace
}  // namespace ringlet::train
