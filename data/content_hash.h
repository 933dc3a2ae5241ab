// Counts and hashes the pixels of a data set in one pass.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ringlet::data {

/// How often each byte value occurs.
using Histogram = std::array<std::uint64_t, 256>;

/// Hashes all pixels of a set, and counts those of each channel by themselves.
class PixelCounter {
 public:
  /// An image is `channels` planes of `plane` pixels, one behind the other.
  PixelCounter(std::uint64_t seed, std::int64_t channels, std::int64_t plane);

  /// The next bytes of image after image. They may be cut anywhere: the results are the same.
  void add(std::span<const std::uint8_t> bytes);
  /// The hash of all bytes, chained to the seed. Nothing may be added afterwards.
  std::uint64_t finish();
  /// How often each value occurs in `channel`, after finish().
  Histogram histogram(std::int64_t channel) const;

 private:
  void take(std::span<const std::uint8_t> piece);

  std::size_t plane_;
  std::uint64_t hash_;
  std::uint64_t bytes_ = 0;
  std::size_t channel_ = 0;                         // of the next byte
  std::size_t at_ = 0;                              // the next byte's position in its plane
  std::vector<std::uint8_t> held_;                  // the beginning of a piece
  std::vector<std::array<Histogram, 4>> counters_;  // [channel]; see content_hash.cc
};

}  // namespace ringlet::data
