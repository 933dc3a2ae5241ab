#include "data/kept_samples.h"

#include <algorithm>

#include "base/data_error.h"
#include "base/memory_limits.h"
#include "data/in_parallel.h"

namespace ringlet::data {

KeptSamples::KeptSamples(const Dataset& set)
    : name_(set.name()), samples_(static_cast<std::size_t>(set.size())) {
  if (!set.keeps_samples()) {
    apart_.resize(samples_.size());
    return;
  }
  const auto pixels = static_cast<std::size_t>(set.pixels());
  require_memory(samples_.size() * pixels);
  images_.resize(samples_.size() * pixels);
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    samples_[i] = std::span(images_).subspan(i * pixels, pixels);
  }
}

void KeptSamples::require_memory(std::uint64_t bytes) const {
  if (bytes <= usable_memory()) return;
  throw DataError(name_ + ": " + std::to_string(bytes >> 20) +
                  " MiB of pixels do not fit into the " + std::to_string(usable_memory() >> 20) +
                  " MiB of memory; leave --cache out, or take smaller pictures with --image-size "
                  "or --crop-from");
}

void KeptSamples::put(std::int64_t index, std::span<const std::uint8_t> kept) {
  const auto at = static_cast<std::size_t>(index);
  if (apart_.empty()) {
    if (kept.size() != samples_[at].size()) {
      throw DataError(name_ + ": sample " + std::to_string(index) + " has " +
                      std::to_string(kept.size()) + " bytes, not " +
                      std::to_string(samples_[at].size()));
    }
    std::ranges::copy(kept, images_.begin() + index * std::ssize(kept));
    return;
  }
  require_memory(bytes_ += kept.size());
  apart_[at].assign(kept.begin(), kept.end());
  samples_[at] = apart_[at];
}

std::shared_ptr<const KeptSamples> keep_all(const Dataset& set, int threads) {
  const auto kept = std::make_shared<KeptSamples>(set);
  in_parallel(
      set.size(), threads,
      [&](std::int64_t i) {
        thread_local std::vector<std::uint8_t> sample;
        set.keep(i, sample);
        kept->put(i, sample);
      },
      set.stop_requested());
  return kept;
}

}  // namespace ringlet::data
