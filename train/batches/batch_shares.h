// BatchShares: this rank's share of each of the world's batches, for training loops of one's own.
//
//   BatchShares batches(dataset, all.world(), {.batch_size = 64});
//   Learner learner(device, all, make_my_model, {.max_batch = batches.largest()});
//   while (const data::Batch* share = batches.next()) {
//     learner.step(*share, batches.world_samples(), {.lr = 0.1});
//   }
//
// A batch of 64 on three ranks is 22 + 21 + 21. The last batch of an epoch is what is left of it. A
// rank's share of that may be empty and is handed out all the same, since every rank has to make
// every step. partition.h says how shares are cut; a thread prepares them (data/loader.h).
#pragma once

#include <cstdint>
#include <memory>

#include "comm/core/world.h"
#include "data/loader.h"
#include "train/batches/partition.h"

namespace ringlet::train {

struct BatchSharesOptions {
  std::int64_t batch_size = 64;  ///< samples of all ranks together
  std::int64_t epochs = 1;
  std::uint64_t seed = 1;  ///< of the orders, one an epoch, which are the same on every rank
  bool shuffle = true;
  data::PerChannel mean = 0;  ///< of pixels / 255; a model sees (pixel / 255 - mean) / deviation
  data::PerChannel deviation = 1;  ///< of pixels / 255, > 0
};

class BatchShares {
 public:
  /// Throws DataError for options that make no sense.
  BatchShares(const std::shared_ptr<const data::Dataset>& dataset, const comm::World& world,
              const BatchSharesOptions& options);

  /// The share of the next batch, valid until the following call; null after the last epoch.
  const data::Batch* next();

  /// Batches that next() has given so far: 1 after the first.
  std::int64_t step() const { return step_; }
  /// Samples of the latest batch, all ranks together.
  std::int64_t world_samples() const { return partition_.step_range(step_ - 1).size(); }
  /// Samples of this rank's largest share.
  std::int64_t largest() const { return partition_.max_unit(rank_); }
  std::int64_t steps_per_epoch() const { return partition_.steps_per_epoch(); }

 private:
  Partition partition_;
  int rank_;
  std::int64_t step_ = 0;
  data::Loader loader_;
};

}  // namespace ringlet::train
