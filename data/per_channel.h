// PerChannel: a number for each channel of an image, or one for all of them, as in normalisation:
// (pixel / 255 - mean[c]) / deviation[c].
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/sampling.h"

namespace ringlet::data {

class PerChannel {
 public:
  PerChannel(float all)
      : values_{all} {}  // NOLINT(google-explicit-constructor): as 0.5F is written
  /// One a channel; at least one.
  explicit PerChannel(std::vector<float> values) : values_(std::move(values)) {}

  float operator[](std::size_t channel) const {
    return values_.size() == 1 ? values_[0] : values_[channel];
  }
  /// One value, which is for all channels, or one a channel.
  std::span<const float> values() const { return values_; }
  bool operator==(const PerChannel&) const = default;

 private:
  std::vector<float> values_;
};

/// The normalisation of each channel; one for all where their numbers are the same.
inline std::vector<PixelScale> pixel_scales(const PerChannel& mean, const PerChannel& deviation) {
  std::vector<PixelScale> scales;
  const auto alike = [](std::span<const float> values) {
    return std::ranges::all_of(values, [&](float value) { return value == values[0]; });
  };
  const bool one = alike(mean.values()) && alike(deviation.values());
  const std::size_t count = one ? 1 : std::max(mean.values().size(), deviation.values().size());
  for (std::size_t c = 0; c < count; ++c) scales.emplace_back(mean[c], deviation[c]);
  return scales;
}

}  // namespace ringlet::data
