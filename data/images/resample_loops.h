// The two passes of the resampler (resample.h), each compiled for several instruction sets. A
// version must call nothing of the standard library: the linker might take it for others too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringlet::data {

inline constexpr int kResampleBits = 22;  ///< behind the point of a weight

struct ResampleRows {
  const std::uint8_t* pixels = nullptr;  ///< four bytes each
  std::ptrdiff_t row_bytes = 0;
  int count = 0;
};

/// See ResampleWeights.
struct ResampleTaps {
  const int* first = nullptr;
  const std::int32_t* weights = nullptr;
  int count = 0;  ///< of each output
};

struct ResampleLoops {
  /// [rows.count, width, 4]: each row by itself.
  void (*across)(const ResampleRows& rows, const ResampleTaps& taps, int width, std::uint8_t* out);
  /// One row of `bytes` bytes from `taps` rows below each other.
  void (*down)(const std::uint8_t* rows, std::size_t bytes, const std::int32_t* weights, int taps,
               std::uint8_t* out);
};

ResampleLoops resample_loops_portable();
/// The fastest that this processor has.
ResampleLoops best_resample_loops();

}  // namespace ringlet::data
