// One pass from stored bytes to a batch: gather, normalise, lay out. Samples that are not in
// memory, or are varied, are read, at most sixteen at a time, into memory that is allocated once.
// Several threads may read a batch's samples, into memory of theirs, and lay out blocks of it.
//
// All layouts use the same PixelScales, so a sample has the same values in each.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/sampling.h"
#include "data/dataset.h"
#include "data/loader.h"

namespace ringlet::data {

class BatchWriter {
 public:
  /// `options.deviation` must be positive (the loader checks it). Keeps a reference to `dataset`.
  BatchWriter(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options);

  /// Floats that a batch of `samples` takes.
  std::int64_t image_floats(std::int64_t samples) const;

  /// Fills images, targets and fields of the batch for `request`, and sets batch.n and .request.
  /// Throws DataError when the request lies outside the data set or exceeds options.max_batch.
  void write(const BatchRequest& request, Batch& batch);

  /// Samples of a block, which is laid out at once.
  static constexpr std::int64_t kBlock = 16;
  /// Whether samples have to be read: write() takes long.
  bool reads() const { return images_.empty(); }
  std::int64_t pixels() const { return dataset_.pixels(); }  ///< of a sample
  std::span<const Field> fields() const { return dataset_.fields(); }

  // The same in parts, for many threads. Each throws as write().
  /// Sets batch.n and batch.request.
  void begin(const BatchRequest& request, Batch& batch) const;
  /// Reads the sample at `row` (0 .. n - 1), and sets its target and fields.
  void read(Batch& batch, std::int64_t row, std::span<std::uint8_t> sample) const;
  /// Writes `samples` [count, pixels()] to batch.images from `row` on. `row` begins a block;
  /// `count` is a block, or up to the batch's end.
  void lay_out(const std::uint8_t* samples, std::int64_t row, std::int64_t count,
               Batch& batch) const;

 private:
  using Rows = std::array<const std::uint8_t*, kBlock>;
  void check(const BatchRequest& request) const;
  /// Sets target and fields of the sample at `row`, and says which sample it is.
  std::int64_t target(Batch& batch, std::int64_t row) const;
  void write_one_by_one(const BatchRequest& request, Batch& batch);
  void write_lanes(const BatchRequest& request, Batch& batch);
  void lay_out_image(const std::uint8_t* image, float* out) const;
  void lay_out_nhwc(const std::uint8_t* image, float* out) const;
  /// `filled` of the rows are samples.
  void lay_out_lanes(Rows rows, std::int64_t filled, float* out) const;
  /// The sample at `position`, whose target goes to batch.targets. It stays until the sixteenth
  /// call after this one.
  const std::uint8_t* gather(const BatchRequest& request, std::int64_t position, Batch& batch);

  const Dataset& dataset_;
  std::span<const std::uint8_t> images_;  // of the data set; empty where samples are read
  std::vector<std::uint8_t> read_;        // else: sixteen samples
  Sampler sampler_;
  Augmentation augmentation_;
  std::function<void()> on_read_;
  BatchLayout layout_;
  std::int64_t max_batch_;
  std::vector<PixelScale> scales_;  // one for all channels, or one a channel
};

}  // namespace ringlet::data
