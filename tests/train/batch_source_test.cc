// The three sources of batches give the same bits, whatever is announced or skipped.
#include "train/batches/batch_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "data/random_images.h"
#include "tests/support/read_dataset.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kSamples = 50, kBatch = 12;

/// Batches of 12, 12, 12, 12 and 2 samples, epoch after epoch; the third of each epoch is empty.
std::optional<data::BatchRequest> schedule(std::int64_t k) {
  const std::int64_t steps = 6;
  if (k >= 3 * steps) return {};
  const std::int64_t i = k % steps, at = i < 3 ? i : i - 1;
  if (i == 2) return data::BatchRequest{k / steps, 24, 24};
  return data::BatchRequest{k / steps, at * kBatch, std::min((at + 1) * kBatch, kSamples)};
}

BatchOptions options_of(data::BatchLayout layout, bool shuffle) {
  return {{.layout = layout, .mean = 0.3F, .deviation = 0.4F, .max_batch = kBatch}, 7, shuffle, 4};
}

/// A batch's bytes, so that batches can be compared after they are gone.
std::string content(const data::Batch& batch, data::BatchLayout layout, std::int64_t pixels) {
  const std::int64_t rows = layout == data::BatchLayout::nchw ? batch.n : (batch.n + 15) / 16 * 16;
  std::string bytes(reinterpret_cast<const char*>(batch.images),
                    static_cast<std::size_t>(rows * pixels) * sizeof(float));
  bytes.append(reinterpret_cast<const char*>(batch.targets),
               static_cast<std::size_t>(batch.n) * sizeof(std::int32_t));
  return bytes + " of " + std::to_string(batch.request.epoch) + ":" +
         std::to_string(batch.request.begin) + "-" + std::to_string(batch.request.end);
}

struct Case {
  data::BatchLayout layout;
  bool shuffle;
};

class BatchSources : public ::testing::TestWithParam<Case> {
 protected:
  std::vector<std::string> read_all(BatchSource& source) {
    std::vector<std::string> contents;
    while (const data::Batch* batch = source.next()) {
      contents.push_back(content(*batch, GetParam().layout, dataset_->pixels()));
    }
    return contents;
  }
  std::shared_ptr<const data::Dataset> dataset_ = formula_dataset(kSamples);
  BatchOptions options_ = options_of(GetParam().layout, GetParam().shuffle);
  std::unique_ptr<Device> device_ = open_device({});
};

TEST_P(BatchSources, GiveTheSameBits) {
  const auto expected = read_all(*make_host_batches(dataset_, schedule, options_));
  ASSERT_EQ(expected.size(), 18u);
  EXPECT_NE(expected[0], expected[1]);
  EXPECT_EQ(read_all(*make_resident_batches(*device_, *dataset_, schedule, options_)), expected);
  EXPECT_EQ(read_all(*make_streamed_batches(*device_, dataset_, schedule, options_)), expected);
}

TEST_P(BatchSources, GiveTheSameBitsOfADataSetThatIsNotInMemory) {
  const auto expected = read_all(*make_host_batches(dataset_, schedule, options_));
  const auto read = std::make_shared<const testing::ReadDataset>(dataset_);
  EXPECT_EQ(read_all(*make_host_batches(read, schedule, options_)), expected);
  EXPECT_EQ(read_all(*make_streamed_batches(*device_, read, schedule, options_)), expected);
  EXPECT_THROW(make_resident_batches(*device_, *read, schedule, options_), ContractError);
}

TEST_P(BatchSources, LeaveBatchesAloneWhileTheyAreHeld) {
  const auto read = std::make_shared<const testing::ReadDataset>(dataset_);
  const auto expected = read_all(*make_host_batches(dataset_, schedule, options_));
  options_.held = 3;
  const auto expect_held = [&](const std::unique_ptr<BatchSource>& source, const char* which) {
    std::vector<const data::Batch*> batches;
    while (const data::Batch* batch = source->next()) {
      batches.push_back(batch);
      EXPECT_EQ(source->failure_within(8), nullptr);  // all that there is memory for is prepared
      const std::size_t first = batches.size() < 3 ? 0 : batches.size() - 3;
      for (std::size_t i = first; i < batches.size(); ++i) {
        EXPECT_EQ(content(*batches[i], GetParam().layout, dataset_->pixels()), expected[i])
            << which << ", batch " << i << " when " << batches.size() << " were given";
      }
    }
    EXPECT_EQ(batches.size(), expected.size());
  };
  expect_held(make_host_batches(dataset_, schedule, options_), "host");
  expect_held(make_resident_batches(*device_, *dataset_, schedule, options_), "resident");
  expect_held(make_streamed_batches(*device_, dataset_, schedule, options_), "streamed");
  options_.loader.workers = 3;
  expect_held(make_host_batches(read, schedule, options_), "workers");
  options_.loader.depth = 0;
  expect_held(make_host_batches(dataset_, schedule, options_), "prepared by next()");
}

TEST_P(BatchSources, AreNotResidentWhereEachChannelHasItsNormalisation) {
  options_.loader.mean = data::PerChannel({0.1F, 0.2F});
  EXPECT_THROW(make_resident_batches(*device_, *dataset_, schedule, options_), ContractError);
}

TEST_P(BatchSources, AreResidentWhereTheChannelsAreNormalisedAlike) {
  dataset_ = data::make_random_images("3x5x4", {.train = kSamples, .test = 1}).train;
  options_.loader.mean = dataset_->mean();
  options_.loader.deviation = dataset_->deviation();
  const auto expected = read_all(*make_host_batches(dataset_, schedule, options_));
  EXPECT_EQ(read_all(*make_resident_batches(*device_, *dataset_, schedule, options_)), expected);
}

TEST_P(BatchSources, AResidentOneTakesWhatWasAnnouncedAndSkipsWhatWasNotTaken) {
  const auto expected = read_all(*make_host_batches(dataset_, schedule, options_));
  const auto source = make_resident_batches(*device_, *dataset_, schedule, options_);
  const auto next = [&] { return content(*source->next(), GetParam().layout, dataset_->pixels()); };
  source->begin_step(4);
  EXPECT_EQ(next(), expected[0]);
  EXPECT_EQ(next(), expected[1]);
  source->begin_step(3);  // 2 and 3 were not taken: a graph stood in for them
  EXPECT_EQ(next(), expected[4]);
  source->begin_step(1);
  EXPECT_EQ(next(), expected[7]);
  EXPECT_EQ(next(), expected[8]);  // one that nobody announced
}

TEST_P(BatchSources, AResidentOneRepeatsAStepOfWhichNothingWasMade) {
  const auto expected = read_all(*make_host_batches(dataset_, schedule, options_));
  const auto source = make_resident_batches(*device_, *dataset_, schedule, options_);
  const auto next = [&] { return content(*source->next(), GetParam().layout, dataset_->pixels()); };
  source->begin_step(3);
  EXPECT_EQ(next(), expected[0]);
  EXPECT_EQ(next(), expected[1]);
  source->repeat_step();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(next(), expected[i]) << i;
}

TEST_P(BatchSources, EndWithTheSchedule) {
  const auto source = make_resident_batches(*device_, *dataset_, schedule, options_);
  for (int i = 0; i < 18; ++i) ASSERT_NE(source->next(), nullptr);
  EXPECT_EQ(source->next(), nullptr);
  source->begin_step(2);
  EXPECT_EQ(source->next(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, BatchSources,
    ::testing::Values(Case{data::BatchLayout::nchw, true}, Case{data::BatchLayout::nchw, false},
                      Case{data::BatchLayout::lanes16, true}),
    [](const auto& tested) {
      return std::string(tested.param.layout == data::BatchLayout::nchw ? "nchw" : "lanes") +
             (tested.param.shuffle ? "_shuffled" : "_in_order");
    });

TEST(BatchSource, ADeviceOnTheHostTakesTheLoadersBatchesAsTheyAre) {
  const auto device = open_device({});
  const auto source = make_batch_source(*device, formula_dataset(kSamples), schedule,
                                        options_of(data::BatchLayout::nchw, true));
  EXPECT_FALSE(source->capturable());
}

TEST(BatchSource, ReplicasLearnTheSameOfADataSetThatIsNotInMemory) {
  const auto on_demand = [](const std::shared_ptr<const data::Dataset>& source) {
    return std::make_shared<const testing::ReadDataset>(source);
  };
  TrainOptions options = exact_options(2);
  options.recipe.normalize = true;
  const data::Splits memory = formula_splits(192);
  const data::Splits read{on_demand(memory.train), on_demand(memory.test)};
  const Outcome expected = run(options, memory), actual = run(options, read);
  EXPECT_EQ(bytes_of(actual.state), bytes_of(expected.state));
  EXPECT_EQ(actual.losses(), expected.losses());
  EXPECT_EQ(actual.result.test.loss, expected.result.test.loss);
}

}  // namespace
}  // namespace ringlet::train
