#include "data/cached_dataset.h"

#include <algorithm>

namespace ringlet::data {

namespace {

DatasetInfo info_of(const Dataset& set) {
  return {.name = set.name(),
          .channels = set.channels(),
          .height = set.height(),
          .width = set.width(),
          .target_names = set.target_names(),
          .photographs = set.photographs(),
          .stop_requested = set.stop_requested()};
}

}  // namespace

CachedDataset::CachedDataset(std::shared_ptr<const Dataset> source,
                             std::shared_ptr<const KeptSamples> kept)
    : Dataset(info_of(*source), {source->targets().begin(), source->targets().end()},
              {source->fields().begin(), source->fields().end()}),
      source_(std::move(source)),
      kept_(std::move(kept)) {}

void CachedDataset::read(std::int64_t index, std::span<std::uint8_t> out) const {
  require_sample(index);
  if (!source_->keeps_samples()) return source_->read(index, out);
  std::ranges::copy((*kept_)[index], out.begin());
}

void CachedDataset::read_varied(std::int64_t index, const Variation& variation,
                                std::span<std::uint8_t> out) const {
  const bool cuts = variation.kind == Augment::random_resized_crop;
  if (!source_->keeps_samples() && !cuts) return source_->read_varied(index, variation, out);
  source_->vary_kept((*kept_)[index], variation, out);
}

}  // namespace ringlet::data
