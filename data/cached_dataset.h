// CachedDataset: a data set whose samples were all read once, and lie in memory since. For devices
// that learn faster than pictures are decoded. It has the same samples, statistics and hash() as
// its source, so a run may go on with it or without.
//
// The samples are what read() gives: pictures that are decoded, resized and cut. They are not what
// random-resized-crop cuts from, so it is not for these sets (app/cli refuses it).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace ringlet::data {

class CachedDataset final : public Dataset {
 public:
  /// `images`: what `source` gives, [N, C, H, W]. Throws DataError where there are not as many.
  CachedDataset(std::shared_ptr<const Dataset> source, std::vector<std::uint8_t> images);

  void read(std::int64_t index, std::span<std::uint8_t> out) const override;
  std::span<const std::uint8_t> images() const override { return images_; }

 protected:
  PixelContent survey(std::uint64_t seed) const override { return survey_of(*source_, seed); }
  std::vector<PixelStatistics> measure() const override { return source_->statistics(); }

 private:
  std::shared_ptr<const Dataset> source_;
  std::vector<std::uint8_t> images_;
};

/// All samples of `set`, [N, C, H, W], read by `threads` threads. Throws the error of the first
/// sample that cannot be read, and DataError where they would not fit into this machine's memory.
std::vector<std::uint8_t> read_all(const Dataset& set, int threads);

}  // namespace ringlet::data
