// Shares of a batch: together they are the batch, on any number of ranks and in the same order.
#include "train/batches/batch_shares.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/data_error.h"
#include "ringlet.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kSamples = 41, kBatch = 16;

/// The labels of each batch on `ranks` ranks, the ranks' shares one behind the other.
std::vector<std::vector<std::int32_t>> batches(int ranks, const BatchSharesOptions& options) {
  const auto dataset = formula_dataset(kSamples);
  std::vector<std::vector<std::int32_t>> labels;
  for (int rank = 0; rank < ranks; ++rank) {
    BatchShares shares(dataset, {.rank = rank, .size = ranks}, options);
    std::size_t step = 0;
    while (const data::Batch* share = shares.next()) {
      if (labels.size() == step) labels.emplace_back();
      labels[step].insert(labels[step].end(), share->targets, share->targets + share->n);
      EXPECT_LE(share->n, shares.largest());
      EXPECT_EQ(shares.step(), static_cast<std::int64_t>(++step));
      if (rank + 1 == ranks) {
        EXPECT_EQ(shares.world_samples(), static_cast<std::int64_t>(labels[step - 1].size()));
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(step), options.epochs * shares.steps_per_epoch());
  }
  return labels;
}

TEST(BatchShares, AreTheBatchOnAnyNumberOfRanks) {
  for (const bool shuffle : {false, true}) {
    const BatchSharesOptions options{.batch_size = kBatch, .epochs = 2, .shuffle = shuffle};
    const auto alone = batches(1, options);
    ASSERT_EQ(alone.size(), 6u);
    EXPECT_EQ(alone[2].size(), 9u) << "what is left of the epoch";
    for (const int ranks : {2, 3, 12}) EXPECT_EQ(batches(ranks, options), alone) << ranks;
  }
}

TEST(BatchShares, ComeInAnotherOrderInEachEpochAndForEachSeed) {
  const auto two = batches(2, {.batch_size = kSamples, .epochs = 2});
  EXPECT_NE(two[0], two[1]);
  EXPECT_NE(two[0], batches(2, {.batch_size = kSamples, .seed = 2})[0]);
}

TEST(BatchShares, OfALastBatchMayBeEmpty) {
  BatchShares last(formula_dataset(kBatch + 1), {.rank = 3, .size = 4}, {.batch_size = kBatch});
  EXPECT_EQ(last.next()->n, 4);
  const data::Batch* share = last.next();
  ASSERT_NE(share, nullptr);
  EXPECT_EQ(share->n, 0);
  EXPECT_EQ(last.world_samples(), 1);
  EXPECT_EQ(last.next(), nullptr);
}

TEST(BatchShares, RefuseWhatMakesNoSense) {
  const auto error_of = [](const std::shared_ptr<const data::Dataset>& dataset,
                           std::int64_t batch_size) {
    return testing::message_of<DataError>(
        [&] { BatchShares(dataset, {}, {.batch_size = batch_size}); });
  };
  EXPECT_TRUE(testing::says(error_of(nullptr, 4), {"no data set"}));
  EXPECT_TRUE(testing::says(error_of(formula_dataset(4), 0), {"batch_size is 0"}));
}

}  // namespace
}  // namespace ringlet::train
