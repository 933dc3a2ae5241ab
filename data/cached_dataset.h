// CachedDataset: a data set whose samples were all read once, and lie in memory since. For devices
// that learn faster than pictures are decoded. It has the same samples, statistics and hash() as
// its source, so a run may go on with it or without.
//
// What lies there is what Dataset::keep() gives: the samples, or the larger pictures that a set
// cuts its training samples from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/kept_samples.h"

namespace ringlet::data {

class CachedDataset final : public Dataset {
 public:
  /// `kept`: what `source` keeps.
  CachedDataset(std::shared_ptr<const Dataset> source, std::shared_ptr<const KeptSamples> kept);

  void read(std::int64_t index, std::span<std::uint8_t> out) const override;
  void read_varied(std::int64_t index, const Variation& variation,
                   std::span<std::uint8_t> out) const override;
  std::span<const std::uint8_t> images() const override { return kept_->images(); }

 protected:
  PixelContent survey(std::uint64_t /*seed*/) const override { return survey_of(*source_); }
  std::optional<std::uint64_t> former_survey(std::uint64_t seed) const override {
    return former_survey_of(*source_, seed);
  }
  std::vector<PixelStatistics> measure() const override { return source_->statistics(); }

 private:
  std::shared_ptr<const Dataset> source_;
  std::shared_ptr<const KeptSamples> kept_;
};

}  // namespace ringlet::data
