// What the loops over a channel have in common: vectors and what is left over, and sums of both.
// For files that are compiled for several instruction sets (cpu/simd/vectors.h).
#pragma once

#include <cstdint>

namespace ringlet::impl {

/// Floats of a part, whose sums are f32: it fits into the first-level cache. A multiple of 16.
inline constexpr std::int64_t kNormPart = 4096;

/// Calls vectors(i, turn) for each vector of [0, n), with turns 0 to 3, and single(i) for each
/// element that is left.
template <class S, class Vectors, class Single>
[[gnu::always_inline]] inline void for_all(std::int64_t n, const Vectors& vectors,
                                           const Single& single) {
  constexpr std::int64_t kWidth = S::kWidth;
  std::int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
    vectors(i, 0);
    vectors(i + kWidth, 1);
    vectors(i + 2 * kWidth, 2);
    vectors(i + 3 * kWidth, 3);
  }
  for (; i + kWidth <= n; i += kWidth) vectors(i, 0);
  for (; i < n; ++i) single(i);
}

template <class S>
[[gnu::always_inline]] inline double sum_of(const typename S::Vector& v) {
  double total = 0;
  for (int i = 0; i < S::kWidth; ++i) total += static_cast<double>(v[i]);
  return total;
}

/// Four sums of vectors and one of what is left over.
template <class S>
struct Sums {
  typename S::Vector vectors[4] = {};
  float rest = 0;
  double total() const {
    return sum_of<S>((vectors[0] + vectors[1]) + (vectors[2] + vectors[3])) +
           static_cast<double>(rest);
  }
};

}  // namespace ringlet::impl
