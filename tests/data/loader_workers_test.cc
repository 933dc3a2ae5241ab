// Many threads read a loader's samples: the same bytes in the same order, whatever becomes of them.
#include "data/loader_workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "base/data_error.h"
#include "data/memory_dataset.h"
#include "tests/support/counting_new.h"
#include "tests/support/files.h"
#include "tests/support/read_dataset.h"

namespace ringlet::data {
namespace {

constexpr std::int64_t kSamplesOfSet = 67, kSideOfSet = 6;

std::shared_ptr<const Dataset> coloured_set() {
  std::vector<std::uint8_t> images(kSamplesOfSet * 3 * kSideOfSet * kSideOfSet);
  std::vector<std::int32_t> labels(kSamplesOfSet);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::uint8_t>(i * 13 + 7);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i);
  return std::make_shared<const MemoryDataset>(
      DatasetInfo{"colours", 3, kSideOfSet, kSideOfSet,
                  std::vector<std::string>(kSamplesOfSet, "class")},
      std::move(images), std::move(labels));
}

/// Takes a while, another one each time.
class SlowDataset final : public Dataset {
 public:
  explicit SlowDataset(std::shared_ptr<const Dataset> source, std::vector<std::int64_t> broken = {})
      : Dataset({source->name(), 3, kSideOfSet, kSideOfSet, source->target_names()},
                {source->targets().begin(), source->targets().end()}),
        source_(std::move(source)),
        broken_(std::move(broken)) {}
  void read(std::int64_t index, std::span<std::uint8_t> out) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(index * 37 % 300));
    if (std::find(broken_.begin(), broken_.end(), index) != broken_.end()) {
      throw DataError("sample " + std::to_string(index) + " is broken");
    }
    source_->read(index, out);
  }

 private:
  std::shared_ptr<const Dataset> source_;
  std::vector<std::int64_t> broken_;
};

/// Two epochs in batches of 20, an empty one between them.
std::optional<BatchRequest> two_epochs(std::int64_t k) {
  constexpr std::int64_t kBatch = 20, kBatches = 4;
  if (k == kBatches) return BatchRequest{1, 0, 0};
  const std::int64_t at = k < kBatches ? k : k - 1;
  if (at >= 2 * kBatches) return std::nullopt;
  const std::int64_t begin = at % kBatches * kBatch;
  return BatchRequest{at / kBatches, begin, std::min(begin + kBatch, kSamplesOfSet)};
}

LoaderOptions worker_options(BatchLayout layout, int workers, Augment augment = Augment::none) {
  LoaderOptions result{layout, PerChannel({0.1F, 0.2F, 0.3F}), 0.5F, 20};
  result.workers = workers;
  result.augment = {augment, 5};
  return result;
}

/// All numbers of all batches, one behind the other.
std::vector<float> numbers_of(Loader& loader, BatchLayout layout) {
  std::vector<float> numbers;
  while (const Batch* batch = loader.next()) {
    const std::int64_t stored =
        layout != BatchLayout::lanes16 ? batch->n : (batch->n + 15) / 16 * 16;
    numbers.insert(numbers.end(), batch->images,
                   batch->images + stored * 3 * kSideOfSet * kSideOfSet);
    numbers.insert(numbers.end(), batch->targets, batch->targets + batch->n);
  }
  return numbers;
}

TEST(LoaderWorkers, GiveTheSameBytesWhateverTheirNumber) {
  const auto set = std::make_shared<const SlowDataset>(coloured_set());
  for (const BatchLayout layout : {BatchLayout::nchw, BatchLayout::nhwc, BatchLayout::lanes16}) {
    for (const Augment augment :
         {Augment::none, Augment::flip, Augment::crop_flip, Augment::random_resized_crop}) {
      std::vector<float> expected;
      for (const int workers : {0, 1, 2, 4, 9}) {
        Loader loader(set, Sampler(kSamplesOfSet, 3), two_epochs,
                      worker_options(layout, workers, augment));
        const std::vector<float> numbers = numbers_of(loader, layout);
        if (workers == 0) expected = numbers;
        EXPECT_EQ(numbers, expected) << workers << name_of(augment);
        EXPECT_EQ(loader.next(), nullptr);
      }
    }
  }
}

TEST(LoaderWorkers, VaryASetInMemoryAsOneThatIsRead) {
  for (const int workers : {0, 1, 4}) {
    Loader memory(coloured_set(), Sampler(kSamplesOfSet, 3), two_epochs,
                  worker_options(BatchLayout::nchw, workers, Augment::crop_flip));
    Loader read(std::make_shared<const testing::ReadDataset>(coloured_set()),
                Sampler(kSamplesOfSet, 3), two_epochs,
                worker_options(BatchLayout::nchw, workers, Augment::crop_flip));
    EXPECT_EQ(numbers_of(memory, BatchLayout::nchw), numbers_of(read, BatchLayout::nchw));
  }
}

TEST(LoaderWorkers, EpochsDiffer) {
  Loader loader(coloured_set(), Sampler(kSamplesOfSet, 3, false), two_epochs,
                worker_options(BatchLayout::nchw, 4, Augment::crop_flip));
  std::vector<float> first, second;
  for (int k = 0; k < 9; ++k) {
    const Batch* batch = loader.next();
    std::vector<float>& epoch = k < 4 ? first : second;
    epoch.insert(epoch.end(), batch->images,
                 batch->images + batch->n * 3 * kSideOfSet * kSideOfSet);
  }
  ASSERT_EQ(first.size(), second.size());
  EXPECT_NE(first, second);
}

TEST(LoaderWorkers, FailAtTheBatchOfTheBrokenSampleOnly) {
  // In the order of the file, the batches 2 and 3 hold samples 40 to 66.
  const auto set =
      std::make_shared<const SlowDataset>(coloured_set(), std::vector<std::int64_t>{64, 45});
  for (const int workers : {0, 1, 2, 5}) {
    Loader loader(set, Sampler(kSamplesOfSet, 3, false), two_epochs,
                  worker_options(BatchLayout::nchw, workers));
    EXPECT_NE(loader.next(), nullptr);
    EXPECT_NE(loader.next(), nullptr);
    EXPECT_TRUE(testing::says(testing::message_of<DataError>([&] { loader.next(); }),
                              {"sample 45 is broken"}))
        << workers;
  }
}

TEST(LoaderWorkers, HandOnWhatTheScheduleThrows) {
  const auto set = std::make_shared<const SlowDataset>(coloured_set());
  const BatchSchedule broken = [](std::int64_t k) -> std::optional<BatchRequest> {
    if (k == 1) throw DataError("no schedule");
    return BatchRequest{0, 0, 3};
  };
  Loader loader(set, Sampler(kSamplesOfSet, 3), broken, worker_options(BatchLayout::nchw, 3));
  EXPECT_NE(loader.next(), nullptr);
  EXPECT_TRUE(
      testing::says(testing::message_of<DataError>([&] { loader.next(); }), {"no schedule"}));
  const BatchSchedule outside = [](std::int64_t) -> std::optional<BatchRequest> {
    return BatchRequest{0, 60, 80};
  };
  Loader other(set, Sampler(kSamplesOfSet, 3), outside, worker_options(BatchLayout::nchw, 3));
  EXPECT_TRUE(testing::says(testing::message_of<DataError>([&] { other.next(); }), {"60 to 80"}));
}

TEST(LoaderWorkers, WaitWhereThereIsNoRoom) {
  const auto set = std::make_shared<const testing::ReadDataset>(coloured_set());
  const BatchSchedule endless = [](std::int64_t k) -> std::optional<BatchRequest> {
    return BatchRequest{k, 0, 20};
  };
  Loader loader(set, Sampler(kSamplesOfSet, 3), endless, worker_options(BatchLayout::nchw, 4));
  const auto settled = [&] {
    std::int64_t before = -1;
    while (before != set->reads) {
      before = set->reads;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return before;
  };
  EXPECT_EQ(settled(), 3 * 20);  // as many batches as there is memory for
  loader.next();
  EXPECT_EQ(settled(), 3 * 20);  // that one is held
  loader.next();
  EXPECT_EQ(settled(), 4 * 20);
}

TEST(LoaderWorkers, EndAtOnceAtAnyMoment) {
  const auto set = std::make_shared<const SlowDataset>(coloured_set());
  for (int taken = 0; taken < 5; ++taken) {
    Loader loader(set, Sampler(kSamplesOfSet, 3), two_epochs, worker_options(BatchLayout::nchw, 4));
    for (int k = 0; k < taken; ++k) loader.next();
  }
}

TEST(LoaderWorkers, AllocateNothingOnceTheyRun) {
  const auto set = std::make_shared<const testing::ReadDataset>(coloured_set());
  const BatchSchedule endless = [](std::int64_t k) -> std::optional<BatchRequest> {
    return BatchRequest{k, 0, 20};
  };
  Loader loader(set, Sampler(kSamplesOfSet, 3), endless,
                worker_options(BatchLayout::lanes16, 3, Augment::crop_flip));
  for (int k = 0; k < 100; ++k) loader.next();  // each thread has what it needs
  const std::int64_t before = test::operator_new_calls();
  for (int k = 0; k < 20; ++k) loader.next();
  // But a thread that slept so far reads its first sample now.
  EXPECT_LE(test::operator_new_calls() - before, 6);
}

}  // namespace
}  // namespace ringlet::data
