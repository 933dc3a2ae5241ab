#include "data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/allocator.h"
#include "base/data_error.h"
#include "base/error.h"
#include "data/memory_dataset.h"
#include "tests/support/files.h"
#include "tests/support/read_dataset.h"

namespace ringlet::data {
namespace {

using testing::message_of;
using testing::says;

constexpr std::int64_t kSize = 103;

/// Pixels and labels that tell which sample they belong to.
std::shared_ptr<const Dataset> numbered(std::int64_t height, std::int64_t width,
                                        std::int64_t channels = 1) {
  const std::int64_t pixels = channels * height * width;
  std::vector<std::uint8_t> images(static_cast<std::size_t>(kSize * pixels));
  for (std::int64_t i = 0; i < kSize * pixels; ++i) {
    images[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(i / pixels * 37 + i % pixels * 11);
  }
  std::vector<std::int32_t> labels(kSize);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i);
  return std::make_shared<const MemoryDataset>(
      DatasetInfo{"numbered", channels, height, width, std::vector<std::string>(kSize, "class")},
      std::move(images), std::move(labels));
}

/// The requests of a list, in order.
BatchSchedule listed(std::vector<BatchRequest> requests) {
  return [requests = std::move(requests)](std::int64_t k) -> std::optional<BatchRequest> {
    if (k >= static_cast<std::int64_t>(requests.size())) return std::nullopt;
    return requests[static_cast<std::size_t>(k)];
  };
}

struct Case {
  BatchLayout layout;
  int depth;
  std::int64_t height, width;
  std::int64_t channels = 1;
};

class EveryLoader : public ::testing::TestWithParam<Case> {};

/// Where pixel `p` of sample `i` of the batch stands.
std::int64_t offset_of(BatchLayout layout, std::int64_t pixels, std::int64_t i, std::int64_t p,
                       std::int64_t channels = 1) {
  const std::int64_t area = pixels / channels;
  if (layout == BatchLayout::nhwc) return i * pixels + p % area * channels + p / area;
  return layout == BatchLayout::nchw ? i * pixels + p : (i / 16 * pixels + p) * 16 + i % 16;
}

TEST_P(EveryLoader, GathersNormalisesAndLaysOut) {
  const Case& c = GetParam();
  const auto set = numbered(c.height, c.width, c.channels);
  const Sampler sampler(kSize, 9);
  const std::vector<BatchRequest> requests{{0, 0, 1},    {0, 1, 16},  {0, 16, 32},
                                           {0, 32, 49},  {0, 49, 49}, {0, 49, 97},
                                           {0, 97, 103}, {1, 0, 48},  {7, 100, 103}};
  const LoaderOptions options{c.layout, 0.25F, 0.5F, 48, c.depth};
  Loader loader(set, sampler, listed(requests), options);
  for (const BatchRequest& request : requests) {
    const Batch* batch = loader.next();
    ASSERT_NE(batch, nullptr);
    EXPECT_EQ(batch->request, request);
    ASSERT_EQ(batch->n, request.size());
    for (std::int64_t i = 0; i < batch->n; ++i) {
      const std::int64_t index = sampler.index(request.epoch, request.begin + i);
      ASSERT_EQ(batch->targets[i], index);
      for (std::int64_t p = 0; p < set->pixels(); ++p) {
        const double wanted = (set->image(index)[p] / 255.0 - 0.25) / 0.5;
        ASSERT_NEAR(batch->images[offset_of(c.layout, set->pixels(), i, p, c.channels)], wanted,
                    1e-6)
            << "sample " << i << " pixel " << p;
      }
    }
  }
  EXPECT_EQ(loader.next(), nullptr);
  EXPECT_EQ(loader.next(), nullptr);
}

TEST_P(EveryLoader, LanesBeyondTheBatchAreZero) {
  const Case& c = GetParam();
  if (c.layout != BatchLayout::lanes16) return;  // nchw has no lanes
  const auto set = numbered(c.height, c.width, c.channels);
  // A full batch first, so that there is something to clear.
  Loader loader(set, Sampler(kSize, 9), listed({{0, 0, 32}, {0, 0, 32}, {0, 0, 32}, {0, 32, 49}}),
                {c.layout, 0.5F, 0.5F, 32, c.depth});
  for (int i = 0; i < 3; ++i) loader.next();
  const Batch* batch = loader.next();
  ASSERT_EQ(batch->n, 17);
  for (std::int64_t p = 0; p < set->pixels(); ++p) {
    for (std::int64_t lane = 17; lane < 32; ++lane) {
      ASSERT_EQ(batch->images[offset_of(c.layout, set->pixels(), lane, p)], 0.0F)
          << p << " " << lane;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    LayoutsAndDepths, EveryLoader,
    ::testing::Values(Case{BatchLayout::nchw, 0, 28, 28}, Case{BatchLayout::nchw, 3, 28, 28},
                      Case{BatchLayout::nchw, 2, 3, 5, 3}, Case{BatchLayout::nhwc, 0, 3, 5, 3},
                      Case{BatchLayout::nhwc, 2, 4, 4}, Case{BatchLayout::lanes16, 0, 28, 28},
                      Case{BatchLayout::lanes16, 2, 28, 28}, Case{BatchLayout::lanes16, 4, 3, 5},
                      Case{BatchLayout::lanes16, 3, 4, 4, 3}, Case{BatchLayout::lanes16, 3, 1, 1}),
    [](const auto& tested) {
      const Case& c = tested.param;
      const std::string layout = c.layout == BatchLayout::nchw   ? "nchw"
                                 : c.layout == BatchLayout::nhwc ? "nhwc"
                                                                 : "lanes";
      return layout + "_depth" + std::to_string(c.depth) + "_" + std::to_string(c.channels) + "x" +
             std::to_string(c.height) + "x" + std::to_string(c.width);
    });

TEST(Loader, ChannelsLastHoldTheSameBits) {
  const auto set = numbered(5, 7, 3);
  const Sampler sampler(kSize, 2);
  const PerChannel mean({0.1F, 0.2F, 0.3F}), deviation({0.4F, 0.5F, 0.6F});
  Loader planes(set, sampler, listed({{0, 0, 50}}), {BatchLayout::nchw, mean, deviation, 50, 0});
  Loader pixels(set, sampler, listed({{0, 0, 50}}), {BatchLayout::nhwc, mean, deviation, 50, 0});
  const Batch *a = planes.next(), *b = pixels.next();
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t p = 0; p < 105; ++p) {
      ASSERT_EQ(a->images[offset_of(BatchLayout::nchw, 105, i, p, 3)],
                b->images[offset_of(BatchLayout::nhwc, 105, i, p, 3)]);
    }
  }
}

TEST(Loader, BothLayoutsHoldTheSameBits) {
  const auto set = numbered(28, 28);
  const Sampler sampler(kSize, 2);
  Loader rows(set, sampler, listed({{0, 0, 50}}), {BatchLayout::nchw, 0.286041F, 0.353024F, 50, 0});
  Loader lanes(set, sampler, listed({{0, 0, 50}}),
               {BatchLayout::lanes16, 0.286041F, 0.353024F, 50, 0});
  const Batch *a = rows.next(), *b = lanes.next();
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t p = 0; p < 784; ++p) {
      ASSERT_EQ(a->images[offset_of(BatchLayout::nchw, 784, i, p)],
                b->images[offset_of(BatchLayout::lanes16, 784, i, p)]);
    }
  }
}

/// Bytes of all the loader's batches, with what belongs to each.
std::string all_bytes(const std::shared_ptr<const Dataset>& set, const LoaderOptions& options) {
  Loader loader(set, Sampler(kSize, 9), listed({{0, 0, 1}, {0, 1, 48}, {0, 48, 48}, {3, 60, 103}}),
                options);
  std::string bytes;
  while (const Batch* batch = loader.next()) {
    const std::int64_t stored =
        options.layout != BatchLayout::lanes16 ? batch->n : (batch->n + 15) / 16 * 16;
    bytes.append(reinterpret_cast<const char*>(batch->images),
                 static_cast<std::size_t>(stored * set->pixels()) * sizeof(float));
    bytes.append(reinterpret_cast<const char*>(batch->targets),
                 static_cast<std::size_t>(batch->n) * sizeof(std::int32_t));
  }
  return bytes;
}

TEST_P(EveryLoader, GivesTheSameBatchesOfSamplesThatAreRead) {
  const Case& c = GetParam();
  const auto memory = numbered(c.height, c.width, c.channels);
  const auto read = std::make_shared<const testing::ReadDataset>(memory);
  const LoaderOptions options{c.layout, 0.25F, 0.5F, 48, c.depth};
  EXPECT_EQ(all_bytes(read, options), all_bytes(memory, options));
  EXPECT_EQ(read->reads, 1 + 47 + 43) << "each sample of a batch once, and no other";
}

TEST_P(EveryLoader, NormalisesEachChannelByItsOwnNumbers) {
  const Case& c = GetParam();
  const auto set = numbered(c.height, c.width, c.channels);
  std::vector<float> means, deviations;
  for (std::int64_t channel = 0; channel < c.channels; ++channel) {
    means.push_back(0.1F + 0.2F * static_cast<float>(channel));
    deviations.push_back(0.5F - 0.1F * static_cast<float>(channel));
  }
  const PerChannel mean(means), deviation(deviations);
  Loader loader(set, Sampler(kSize, 9), listed({{0, 0, 19}}),
                {c.layout, mean, deviation, 19, c.depth});
  const Batch* batch = loader.next();
  for (std::int64_t i = 0; i < 19; ++i) {
    const auto image = set->image(Sampler(kSize, 9).index(0, i));
    for (std::int64_t p = 0; p < set->pixels(); ++p) {
      const auto channel = static_cast<std::size_t>(p / (c.height * c.width));
      const double wanted =
          (image[static_cast<std::size_t>(p)] / 255.0 - means[channel]) / deviations[channel];
      ASSERT_NEAR(batch->images[offset_of(c.layout, set->pixels(), i, p, c.channels)], wanted, 2e-6)
          << p;
    }
  }
}

TEST(Loader, ASampleThatCannotBeReadIsAnErrorOfNext) {
  for (const int depth : {0, 3}) {
    const auto set = std::make_shared<const testing::ReadDataset>(numbered(4, 4), 11);
    Loader loader(set, Sampler(kSize, 2, false), listed({{0, 0, 8}, {0, 8, 16}}),
                  {BatchLayout::nchw, 0, 1, 8, depth});
    EXPECT_EQ(loader.next()->n, 8);
    EXPECT_EQ(message_of<DataError>([&] { loader.next(); }), "sample 11 is broken");
  }
}

TEST(Loader, TellsOfAFailureAhead) {
  const auto set = std::make_shared<const testing::ReadDataset>(numbered(4, 4), 27);
  for (const int workers : {1, 3}) {
    Loader loader(set, Sampler(kSize, 2, false),
                  listed({{0, 0, 8}, {0, 8, 16}, {0, 16, 24}, {0, 24, 32}}),
                  {.max_batch = 8, .depth = 4, .workers = workers});
    EXPECT_EQ(loader.failure_within(3), nullptr);
    const std::exception_ptr failure = loader.failure_within(4);
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(message_of<DataError>([&] { std::rethrow_exception(failure); }),
              "sample 27 is broken");
    EXPECT_EQ(loader.next()->n, 8);
    EXPECT_EQ(loader.failure_within(2), nullptr);
    EXPECT_NE(loader.failure_within(3), nullptr);
    EXPECT_NE(loader.failure_within(1000), nullptr);  // no further than there is memory
    loader.next();
    EXPECT_EQ(loader.next()->n, 8);
  }
}

TEST(Loader, AnEndAheadIsNoFailure) {
  for (const int workers : {0, 1, 3}) {
    const auto set = std::make_shared<const testing::ReadDataset>(numbered(4, 4));
    Loader loader(set, Sampler(kSize, 2, false), listed({{0, 0, 8}, {0, 8, 16}}),
                  {.max_batch = 8, .depth = 4, .workers = workers});
    EXPECT_EQ(loader.failure_within(9), nullptr);
    EXPECT_EQ(loader.next()->n, 8);
    EXPECT_EQ(loader.failure_within(9), nullptr);
  }
}

TEST(Loader, ABatchIsLeftAloneUntilTheNextIsAskedFor) {
  const auto set = numbered(28, 28);
  const auto endless = [](std::int64_t k) -> std::optional<BatchRequest> {
    return BatchRequest{k, 0, 64};
  };
  Loader loader(set, Sampler(kSize, 2), endless, {BatchLayout::nchw, 0, 1, 64, 2});
  for (int k = 0; k < 20; ++k) {
    const Batch* batch = loader.next();
    const std::vector<float> before(batch->images, batch->images + 64 * 784);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the thread could overwrite now
    ASSERT_TRUE(std::equal(before.begin(), before.end(), batch->images));
    ASSERT_EQ(batch->request.epoch, k);
  }
}

TEST(Loader, PreparesAheadOnItsOwnThread) {
  std::atomic<int> asked{0};
  std::atomic<bool> elsewhere{true};
  const auto schedule = [&, caller = std::this_thread::get_id()](std::int64_t) {
    elsewhere = elsewhere && std::this_thread::get_id() != caller;
    ++asked;
    return std::optional<BatchRequest>(BatchRequest{0, 0, 8});
  };
  Loader loader(numbered(4, 4), Sampler(kSize, 2), schedule, {BatchLayout::nchw, 0, 1, 8, 4});
  while (asked < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(asked, 4);  // all its memory, and no more
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(asked, 4);  // the first batch is still in use
  loader.next();
  while (asked < 5) std::this_thread::yield();
  EXPECT_TRUE(elsewhere);
}

TEST(Loader, CanBeDestroyedAtAnyMoment) {
  const auto set = numbered(28, 28);
  for (int taken = 0; taken < 6; ++taken) {
    Loader loader(set, Sampler(kSize, 2),
                  [](std::int64_t) {
                    return std::optional(BatchRequest{0, 0, 100});
                  },
                  {BatchLayout::lanes16, 0, 1, 100, 3});
    for (int i = 0; i < taken; ++i) loader.next();
  }
}

TEST(Loader, GivesEarlierBatchesBeforeTheError) {
  for (const int depth : {0, 3}) {
    Loader loader(numbered(4, 4), Sampler(kSize, 2), listed({{0, 0, 8}, {0, 8, 16}, {0, 100, 104}}),
                  {BatchLayout::nchw, 0, 1, 8, depth});
    EXPECT_EQ(loader.next()->request.begin, 0);
    EXPECT_EQ(loader.next()->request.begin, 8);
    for (int again = 0; again < 2; ++again) {
      EXPECT_TRUE(says(message_of<DataError>([&] { loader.next(); }),
                       {"numbered", "positions 100 to 104 of epoch 0", "103 samples"}));
    }
  }
}

TEST(Loader, AnErrorOfTheScheduleComesOutOfNext) {
  const auto failing = [](std::int64_t) -> std::optional<BatchRequest> {
    throw std::runtime_error("the schedule failed");
  };
  Loader loader(numbered(4, 4), Sampler(kSize, 2), failing, {BatchLayout::nchw, 0, 1, 8, 2});
  EXPECT_EQ(message_of<std::runtime_error>([&] { loader.next(); }), "the schedule failed");
}

TEST(Loader, RefusesRequestsItCannotMeet) {
  for (const BatchRequest& request :
       {BatchRequest{0, 0, 9}, BatchRequest{0, -1, 3}, BatchRequest{0, 5, 4},
        BatchRequest{-1, 0, 4}, BatchRequest{0, 104, 104}}) {
    Loader loader(numbered(4, 4), Sampler(kSize, 2), listed({request}),
                  {BatchLayout::nchw, 0, 1, 8, 0});
    EXPECT_TRUE(says(message_of<DataError>([&] { loader.next(); }), {"largest batch is 8"}));
  }
}

/// Memory of the process as long as `left` does not reach 0, which counts what is live.
class CountingAllocator : public Allocator {
 public:
  explicit CountingAllocator(int left = 1000) : left_(left) {}
  void* allocate(std::int64_t size) override {
    if (left_-- == 0) throw std::runtime_error("no more pinned memory");
    void* memory = host_allocator().allocate(size);
    live[memory] = size;
    bytes += size;
    return memory;
  }
  void deallocate(void* memory, std::int64_t size) noexcept override {
    const auto found = live.find(memory);
    if (found == live.end() || found->second != size) std::abort();
    live.erase(found);
    host_allocator().deallocate(memory, size);
  }
  std::map<void*, std::int64_t> live;
  std::int64_t bytes = 0;

 private:
  int left_;
};

class NoMemory : public Allocator {
 public:
  void* allocate(std::int64_t) override { throw OutOfMemoryError("there is none"); }
  void deallocate(void*, std::int64_t) noexcept override {}
};

TEST(Loader, RefusesOptionsThatMakeNoSense) {
  NoMemory without_memory;
  const auto error = [&](const LoaderOptions& options, std::int64_t sampled = kSize) {
    return message_of<DataError>(
        [&] { Loader(numbered(4, 4), Sampler(sampled, 2), listed({}), options, without_memory); });
  };
  EXPECT_TRUE(says(error({BatchLayout::nchw, 0, 1, 0, 3}), {"max_batch"}));
  EXPECT_TRUE(says(error({BatchLayout::nchw, 0, 1, 8, 1}), {"depth"}));
  EXPECT_TRUE(says(error({BatchLayout::nchw, 0, 0, 8, 3}), {"deviation"}));
  EXPECT_TRUE(says(error({BatchLayout::nchw, NAN, 1, 8, 3}), {"mean"}));
  EXPECT_TRUE(
      says(error({BatchLayout::nchw, PerChannel({0, 0}), 1, 8, 3}), {"2 means", "1 channels"}));
  EXPECT_TRUE(says(error({BatchLayout::nchw, 0, 1, 8, 3}, 50), {"50 samples", "103 images"}));
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  EXPECT_TRUE(
      says(error({BatchLayout::nchw, 0, 1, kMany, 3}), {"memory", "1099511627776 samples"}));
  EXPECT_TRUE(says(error({BatchLayout::nchw, 0, 1, kMany << 20, 3}), {"memory", "samples"}));
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const int workers : {-1, 1025, kMost}) {
    EXPECT_TRUE(says(error({.max_batch = 8, .workers = workers}),
                     {"LoaderOptions::workers", std::to_string(workers), "0 to 1024"}));
  }
  EXPECT_TRUE(says(error({.max_batch = 8, .depth = kMost}), {"no memory for 2147483647 batches"}));
}

TEST(Loader, RefusesAnEmptyFunction) {
  EXPECT_TRUE(says(message_of<DataError>(
                       [&] { Loader(numbered(4, 4), Sampler(kSize, 2), {}, {.max_batch = 8}); }),
                   {"the schedule is empty"}));
}

TEST(Loader, TakesItsMemoryFromTheAllocatorAndGivesItBack) {
  CountingAllocator counting;
  {
    Loader loader(numbered(4, 4), Sampler(kSize, 2), listed({{0, 0, 17}}),
                  {BatchLayout::lanes16, 0, 1, 17, 3}, counting);
    EXPECT_EQ(counting.bytes, 3 * (32 * 16 * sizeof(float) + 17 * sizeof(std::int32_t)));
    EXPECT_TRUE(counting.live.contains(loader.next()->images));
  }
  EXPECT_TRUE(counting.live.empty());
}

TEST(Loader, GivesMemoryBackWhenTheAllocatorFails) {
  CountingAllocator failing(3);
  EXPECT_EQ(message_of<std::runtime_error>([&] {
              Loader(numbered(4, 4), Sampler(kSize, 2), listed({}), {BatchLayout::nchw, 0, 1, 8, 3},
                     failing);
            }),
            "no more pinned memory");
  EXPECT_TRUE(failing.live.empty());
}

TEST(Loader, MeasuresTheTimeThatNextWaits) {
  const auto slow = [](std::int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return std::optional(BatchRequest{0, 0, 8});
  };
  for (const int depth : {0, 2}) {
    Loader loader(numbered(4, 4), Sampler(kSize, 2), slow, {BatchLayout::nchw, 0, 1, 8, depth});
    EXPECT_EQ(loader.waited_seconds(), 0);
    for (int i = 0; i < 4; ++i) loader.next();
    EXPECT_GT(loader.waited_seconds(), 0.03);
  }
}

}  // namespace
}  // namespace ringlet::data
