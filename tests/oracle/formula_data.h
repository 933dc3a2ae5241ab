// Training data by an integer formula: what tests/oracle/make_reference.py trained PyTorch on.
//
// A label is a size of a bright rectangle, whose position varies, on a noisy ground. The formula is
// written out in make_reference.py; reference.json ("formula_check") holds its sum and first
// values.
#pragma once

#include <cstdint>

namespace ringlet::oracle {

inline constexpr int kFormulaSide = 28;
inline constexpr int kFormulaClasses = 10;

/// The integer hash "lowbias32" (Wellons, "Prospecting for hash functions", 2018).
constexpr std::uint32_t mix(std::uint32_t v) {
  v ^= v >> 16;
  v *= 0x7feb352dU;
  v ^= v >> 15;
  v *= 0x846ca68bU;
  return v ^ (v >> 16);
}

/// Of sample i.
constexpr std::uint8_t formula_label(std::uint32_t i) {
  return static_cast<std::uint8_t>(mix(i + 1) % kFormulaClasses);
}

/// Of sample i at row y and column x, both below kFormulaSide.
constexpr std::uint8_t formula_pixel(std::uint32_t i, std::uint32_t y, std::uint32_t x) {
  const std::uint32_t label = formula_label(i), position = mix(i + 77777);
  const std::uint32_t top = 2 + position % 3, left = 2 + position / 8 % 3;
  const bool in_rows = y >= top && y < top + 4 + 4 * (label % 5);
  const bool in_columns = x >= left && x < left + 6 + 12 * (label / 5);
  const std::uint32_t noise = mix(784 * i + 28 * y + x) % 32;
  return static_cast<std::uint8_t>((in_rows && in_columns ? 192 : 0) + noise);
}

}  // namespace ringlet::oracle
