#include "train/batches/batch_shares.h"

#include <string>

#include "base/data_error.h"

namespace ringlet::train {

namespace {

Partition partition_of(const data::Dataset* dataset, const comm::World& world,
                       const BatchSharesOptions& options) {
  if (dataset == nullptr) throw DataError("BatchShares: there is no data set");
  if (options.batch_size < 1 || options.epochs < 0) {
    throw DataError("BatchShares: a batch has at least one sample, and epochs are not " +
                    std::to_string(options.epochs) + "; batch_size is " +
                    std::to_string(options.batch_size));
  }
  return {.size = dataset->size(),
          .batch_size = options.batch_size,
          .shards = world.size,
          .ranks = world.size};
}

}  // namespace

BatchShares::BatchShares(const std::shared_ptr<const data::Dataset>& dataset,
                         const comm::World& world, const BatchSharesOptions& options)
    : partition_(partition_of(dataset.get(), world, options)),
      rank_(world.rank),
      loader_(dataset, Sampler(dataset->size(), options.seed, options.shuffle),
              [partition = partition_, rank = rank_,
               steps = options.epochs * partition_.steps_per_epoch()](
                  std::int64_t step) -> std::optional<data::BatchRequest> {
                if (step == steps) return {};
                return partition.unit(step, rank, 0);
              },
              {.mean = options.mean,
               .deviation = options.deviation,
               .max_batch = partition_.max_unit(rank_)}) {}

const data::Batch* BatchShares::next() {
  const data::Batch* share = loader_.next();
  if (share != nullptr) ++step_;
  return share;
}

}  // namespace ringlet::train
