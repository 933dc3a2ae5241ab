// One pass from stored bytes to a batch: gather, normalise, lay out.
//
// Both layouts use the same PixelScale, so a sample has the same values in either.
#pragma once

#include <cstdint>

#include "data/dataset.h"
#include "data/loader.h"
#include "data/sampler.h"

namespace ringlet::data {

class BatchWriter {
 public:
  /// `options.deviation` must be positive. Keeps a reference to `dataset`.
  BatchWriter(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options);

  /// Floats that a batch of `samples` takes.
  std::int64_t image_floats(std::int64_t samples) const;

  /// Fills batch.images and batch.labels for `request`, and sets batch.n and batch.request.
  /// Throws DataError when the request lies outside the data set or exceeds options.max_batch.
  void write(const BatchRequest& request, Batch& batch) const;

 private:
  void check(const BatchRequest& request) const;
  void write_nchw(const BatchRequest& request, Batch& batch) const;
  void write_lanes(const BatchRequest& request, Batch& batch) const;
  /// The sample at `position`, whose label goes to batch.labels.
  const std::uint8_t* gather(const BatchRequest& request, std::int64_t position,
                             Batch& batch) const;

  const Dataset& dataset_;
  Sampler sampler_;
  BatchLayout layout_;
  std::int64_t max_batch_;
  PixelScale scale_;
};

}  // namespace ringlet::data
