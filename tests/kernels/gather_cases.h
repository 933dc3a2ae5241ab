// Batches as data/'s loader makes them, to compare gather_batch with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "data/memory_dataset.h"
#include "kernels/gather_batch.h"
#include "tests/support/tensors.h"

namespace ringlet::test {

/// A size that is no power of two, so that the permutation walks.
inline constexpr std::int64_t kGatherSize = 103;
inline constexpr std::uint64_t kGatherSeed = 9;
inline constexpr float kGatherMean = 0.2860406F, kGatherDeviation = 0.35302424F;

struct GatherCase {
  Shape image;  // [1, C, H, W]
  bool shuffle;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  GatherSpec spec;

  Shape shape() const { return image.with_batch(kGatherSize); }
};

inline GatherCase make_gather_case(const Shape& image, bool shuffle) {
  GatherCase c{image, shuffle, {}, random_labels(kGatherSize, 2, 10), {}};
  for (const auto value : random_labels(kGatherSize * image.count(), 1, 256)) {
    c.pixels.push_back(static_cast<std::uint8_t>(value));
  }
  c.spec = {Sampler(kGatherSize, kGatherSeed, shuffle), PixelScale(kGatherMean, kGatherDeviation)};
  return c;
}

/// Images of whole packs of four pixels, and not; larger than a block of threads.
inline std::vector<GatherCase> gather_cases() {
  return {make_gather_case({1, 1, 4, 5}, true), make_gather_case({1, 3, 3, 5}, true),
          make_gather_case({1, 1, 28, 28}, true), make_gather_case({1, 1, 19, 17}, false)};
}

inline std::vector<data::BatchRequest> gather_requests() {
  return {{0, 0, 1}, {0, 1, 18}, {0, 5, 5}, {1, 0, 64}, {7, 90, 103}};
}

struct GatheredBatch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
};

inline GatheredBatch batch_of_the_loader(const GatherCase& c, const data::BatchRequest& request) {
  const auto set = std::make_shared<const data::MemoryDataset>(
      data::DatasetInfo{"random", c.image[1], c.image[2], c.image[3],
                        std::vector<std::string>(10, "class")},
      c.pixels, c.labels);
  const auto once = [request](std::int64_t k) {
    return k == 0 ? std::optional(request) : std::nullopt;
  };
  data::Loader loader(set, c.spec.sampler, once,
                      {data::BatchLayout::nchw, kGatherMean, kGatherDeviation, kGatherSize, 0});
  const data::Batch& batch = *loader.next();
  return {{batch.images, batch.images + batch.n * c.image.count()},
          {batch.targets, batch.targets + batch.n}};
}

}  // namespace ringlet::test
