#include "data/content_hash.h"

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "base/sampling.h"

namespace ringlet::data {
namespace {

/// Pieces stay in the first-level cache between hashing and counting.
constexpr std::size_t kPieceBytes = std::size_t{1} << 14;

/// Four counters, so that equal neighbours do not wait for each other's.
void count(std::span<const std::uint8_t> bytes, std::array<Histogram, 4>& counters) {
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4) {
    for (std::size_t k = 0; k < 4; ++k) ++counters[k][bytes[i + k]];
  }
  for (; i < bytes.size(); ++i) ++counters[0][bytes[i]];
}

}  // namespace

PixelCounter::PixelCounter(std::uint64_t seed, std::int64_t channels, std::int64_t plane)
    : plane_(channels == 1
                 ? std::numeric_limits<std::size_t>::max()  // there is nothing to tell apart
                 : static_cast<std::size_t>(plane)),
      hash_(seed),
      counters_(static_cast<std::size_t>(channels)) {}

void PixelCounter::add(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const std::size_t next = std::min(kPieceBytes - held_.size(), bytes.size());
    const auto part = bytes.first(next);
    bytes = bytes.subspan(next);
    if (next == kPieceBytes) {  // nothing is held
      take(part);
      continue;
    }
    held_.insert(held_.end(), part.begin(), part.end());
    if (held_.size() < kPieceBytes) continue;
    take(held_);
    held_.clear();
  }
}

std::uint64_t PixelCounter::finish() {
  if (!held_.empty()) take(held_);
  return mix64(hash_ ^ bytes_);
}

Histogram PixelCounter::histogram(std::int64_t channel) const {
  Histogram sum{};
  for (const Histogram& counter : counters_[static_cast<std::size_t>(channel)]) {
    for (std::size_t v = 0; v < sum.size(); ++v) sum[v] += counter[v];
  }
  return sum;
}

void PixelCounter::take(std::span<const std::uint8_t> piece) {
  hash_ = hash_bytes(piece, hash_);
  bytes_ += piece.size();
  while (!piece.empty()) {
    const std::size_t run = std::min(plane_ - at_, piece.size());
    count(piece.first(run), counters_[channel_]);
    piece = piece.subspan(run);
    at_ += run;
    if (at_ < plane_) continue;
    at_ = 0;
    channel_ = (channel_ + 1) % counters_.size();
  }
}

}  // namespace ringlet::data
