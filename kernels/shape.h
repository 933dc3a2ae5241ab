// Shapes of up to four extents, given in the order N, C, H, W whatever the memory layout is.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/error.h"

namespace ringlet {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  constexpr Shape() = default;
  /// The most elements of a tensor: their bytes, rounded up to whole lanes, can still be counted.
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 56;

  /// At most four extents, each >= 0; an empty list is a scalar of one element. Throws
  /// ContractError for more than kMostElements.
  Shape(std::initializer_list<std::int64_t> extents) {
    require(extents.size() <= kMaxRank, "Shape", "at most four extents");
    for (const std::int64_t extent : extents) {
      require(extent >= 0, "Shape", "an extent is negative");
      extents_[static_cast<std::size_t>(rank_++)] = extent;
    }
    require_countable();
  }

  int rank() const { return rank_; }
  /// Extent of dimension `i`, 0 <= i < rank().
  std::int64_t operator[](int i) const { return extents_[static_cast<std::size_t>(i)]; }
  /// Number of elements: the product of the extents.
  std::int64_t count() const { return extents_[0] * extents_[1] * extents_[2] * extents_[3]; }
  /// Elements of one entry along the first dimension (one sample of a batch).
  std::int64_t count_per_sample() const { return extents_[1] * extents_[2] * extents_[3]; }
  /// The same shape with another first extent.
  Shape with_batch(std::int64_t n) const;
  bool operator==(const Shape&) const = default;
  /// "[64, 1, 28, 28]"
  std::string to_string() const;

 private:
  // Views are made all the time, so this is inline, and without a division.
  void require_countable() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank_; ++i) {
      const bool overflows = __builtin_mul_overflow(product, (*this)[i], &product);
      if (overflows || product > kMostElements) throw_uncountable();
    }
  }
  [[noreturn]] void throw_uncountable() const;

  // Those beyond the rank are 1, so that a product is one of all four, without a loop.
  std::array<std::int64_t, kMaxRank> extents_{1, 1, 1, 1};
  int rank_ = 0;
};

/// Height and width of a window, stride, padding or dilation.
struct Extent2 {
  int h = 0;
  int w = 0;
  bool operator==(const Extent2&) const = default;
};

}  // namespace ringlet
