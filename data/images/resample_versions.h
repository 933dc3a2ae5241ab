// The loops themselves, for the file of each instruction set. It brings `Vector`:
//
//   Ints                     eight numbers of 32 bits, with + and * as numbers have them
//   load(bytes)              eight bytes
//   load(upper, lower)       four bytes, and four bytes from elsewhere
//   store(ints, bytes)       eight numbers >= 0; what is above 255 becomes 255
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/images/resample_loops.h"

namespace ringlet::data {

namespace {

constexpr std::int32_t kRounding = 1 << (kResampleBits - 1);

/// Two rows side by side fill a vector.
template <class Vector>
void across_two(const std::uint8_t* upper, const std::uint8_t* lower, const ResampleTaps& taps,
                int width, std::uint8_t* upper_out, std::uint8_t* lower_out) {
  using Ints = typename Vector::Ints;
  const std::int32_t* weights = taps.weights;
  const int count = taps.count;
  for (std::ptrdiff_t x = 0; x < width; ++x, weights += count) {
    const std::ptrdiff_t at = std::ptrdiff_t{taps.first[x]} * 4;
    Ints sum = Ints{} + kRounding;
    for (std::ptrdiff_t t = 0; t < count; ++t) {
      sum += Vector::load(upper + at + 4 * t, lower + at + 4 * t) * weights[t];
    }
    std::uint8_t bytes[8];
    Vector::store(sum >> kResampleBits, bytes);
    __builtin_memcpy(upper_out + 4 * x, bytes, 4);
    __builtin_memcpy(lower_out + 4 * x, bytes + 4, 4);
  }
}

template <class Vector>
void across_rows(const ResampleRows& rows, const ResampleTaps& taps, int width, std::uint8_t* out) {
  const std::ptrdiff_t out_bytes = std::ptrdiff_t{width} * 4;
  for (int y = 0; y < rows.count; y += 2) {
    const int next = y + 1 < rows.count ? y + 1 : y;  // an odd last row is made twice
    across_two<Vector>(rows.pixels + y * rows.row_bytes, rows.pixels + next * rows.row_bytes, taps,
                       width, out + y * out_bytes, out + next * out_bytes);
  }
}

template <class Vector>
void down_rows(const std::uint8_t* rows, std::size_t bytes, const std::int32_t* weights, int taps,
               std::uint8_t* out) {
  using Ints = typename Vector::Ints;
  constexpr std::size_t kParts = 4;  // sums under way at once
  std::size_t i = 0;
  for (; i + 8 * kParts <= bytes; i += 8 * kParts) {
    Ints sums[kParts];
    for (Ints& sum : sums) sum = Ints{} + kRounding;
    const std::uint8_t* row = rows + i;
    for (int t = 0; t < taps; ++t, row += bytes) {
      for (std::size_t p = 0; p < kParts; ++p) sums[p] += Vector::load(row + 8 * p) * weights[t];
    }
    for (std::size_t p = 0; p < kParts; ++p) {
      Vector::store(sums[p] >> kResampleBits, out + i + 8 * p);
    }
  }
  for (; i < bytes; ++i) {
    std::int32_t sum = kRounding;
    for (int t = 0; t < taps; ++t) sum += rows[std::size_t(t) * bytes + i] * weights[t];
    const std::int32_t value = sum >> kResampleBits;
    out[i] = static_cast<std::uint8_t>(value > 255 ? 255 : value);
  }
}

}  // namespace

}  // namespace ringlet::data
