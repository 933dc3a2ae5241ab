// One pass from stored bytes to a batch: gather, normalise, lay out. Samples that are not in memory
// are read, at most sixteen at a time, into memory that is allocated once.
//
// Both layouts use the same PixelScales, so a sample has the same values in either.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/loader.h"
#include "data/sampler.h"

namespace ringlet::data {

class BatchWriter {
 public:
  /// `options.deviation` must be positive (the loader checks it). Keeps a reference to `dataset`.
  BatchWriter(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options);

  /// Floats that a batch of `samples` takes.
  std::int64_t image_floats(std::int64_t samples) const;

  /// Fills batch.images and batch.labels for `request`, and sets batch.n and batch.request.
  /// Throws DataError when the request lies outside the data set or exceeds options.max_batch.
  void write(const BatchRequest& request, Batch& batch);

 private:
  void check(const BatchRequest& request) const;
  void write_nchw(const BatchRequest& request, Batch& batch);
  void write_lanes(const BatchRequest& request, Batch& batch);
  /// The sample at `position`, whose label goes to batch.labels. It stays until the sixteenth call
  /// after this one.
  const std::uint8_t* gather(const BatchRequest& request, std::int64_t position, Batch& batch);

  const Dataset& dataset_;
  std::span<const std::uint8_t> images_;  // of the data set; empty where it has to be read
  std::vector<std::uint8_t> read_;        // else: sixteen samples
  Sampler sampler_;
  BatchLayout layout_;
  std::int64_t max_batch_;
  std::vector<PixelScale> scales_;  // one for all channels, or one a channel
};

}  // namespace ringlet::data
