// The arithmetic of a batch: which sample stands where in an epoch, and what becomes of its pixels.
// The loader's threads (data/) and the GPU's kernel (gather_batch.h) share it. It is the only
// header of kernels that data sees, and includes no other one.
//
// The order of an epoch is a pure function of (seed, epoch, position). There is no shuffled array
// and no state, so every rank, every number of ranks and a resumed run see the same order, and
// nobody has to remember to announce the epoch.
//
// The function is a keyed bijection on [0, n): a Feistel network on the smallest power of two that
// is at least n, repeated while its result lies outside [0, n) ("cycle walking"; Black and Rogaway,
// "Ciphers with arbitrary finite domains", CT-RSA 2002). The power of two is below 2n, so on
// average fewer than two walks are needed, in O(1) memory.
//
// Plain constexpr functions, which device code can call. Only the constructors are for the host:
// nvcc 13 silently makes a 0 of bit_width.
#pragma once

#include <bit>
#include <cstdint>

namespace ringlet {

/// Mixes 64 bits so that each input bit changes each output bit with probability 1/2
/// (the finaliser of SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// A bijection on [0, size) chosen by a 64-bit key.
class Permutation {
 public:
  /// size >= 1.
  constexpr Permutation(std::int64_t size, std::uint64_t key)
      : size_(static_cast<std::uint64_t>(size)), key_(key) {
    const auto bits = static_cast<int>(std::bit_width(size_ - 1));
    low_bits_ = bits / 2;
    low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
    high_mask_ = (std::uint64_t{1} << (bits - low_bits_)) - 1;
  }

  constexpr std::int64_t size() const { return static_cast<std::int64_t>(size_); }
  /// Another bijection on [0, size).
  constexpr Permutation with_key(std::uint64_t key) const {
    Permutation other = *this;
    other.key_ = key;
    return other;
  }

  /// Where `position` goes; 0 <= position < size.
  constexpr std::int64_t operator()(std::int64_t position) const {
    auto value = static_cast<std::uint64_t>(position);
    do value = encrypt(value);
    while (value >= size_);
    return static_cast<std::int64_t>(value);
  }

 private:
  static constexpr int kRounds = 8;  // even: the halves take turns

  /// A bijection on the power of two: each half in turn is masked with a function of the other.
  constexpr std::uint64_t encrypt(std::uint64_t value) const {
    std::uint64_t high = value >> low_bits_, low = value & low_mask_;
    for (std::uint64_t round = 0; round < kRounds; round += 2) {
      high ^= mix64((key_ ^ low) + (round << 56)) & high_mask_;
      low ^= mix64((key_ ^ high) + ((round + 1) << 56)) & low_mask_;
    }
    return (high << low_bits_) | low;
  }

  std::uint64_t size_;
  std::uint64_t key_;
  int low_bits_ = 0;
  std::uint64_t low_mask_ = 0;
  std::uint64_t high_mask_ = 0;
};

/// Which sample stands at which position of which epoch.
class Sampler {
 public:
  /// `size` samples, at least 1. Without `shuffle` every epoch goes through them in order.
  constexpr Sampler(std::int64_t size, std::uint64_t seed, bool shuffle = true)
      : any_order_(size, 0), seed_(seed), shuffle_(shuffle) {}

  constexpr std::int64_t size() const { return any_order_.size(); }
  /// The order of one epoch (>= 0).
  constexpr Permutation order(std::int64_t epoch) const {
    return any_order_.with_key(mix64(seed_ ^ mix64(static_cast<std::uint64_t>(epoch))));
  }
  /// The sample at `position` (0 .. size - 1) of `epoch`.
  constexpr std::int64_t index(std::int64_t epoch, std::int64_t position) const {
    return shuffle_ ? order(epoch)(position) : position;
  }

 private:
  Permutation any_order_;
  std::uint64_t seed_;
  bool shuffle_;
};

/// (pixel / 255 - mean) / deviation as one product and one sum.
class PixelScale {
 public:
  /// mean and deviation of pixels / 255; deviation > 0.
  constexpr PixelScale(float mean, float deviation)
      : scale_(static_cast<float>(1.0 / (255.0 * static_cast<double>(deviation)))),
        shift_(static_cast<float>(-static_cast<double>(mean) / static_cast<double>(deviation))) {}

  constexpr float operator()(std::uint8_t pixel) const {
    return static_cast<float>(pixel) * scale_ + shift_;
  }

 private:
  float scale_;
  float shift_;
};

}  // namespace ringlet
