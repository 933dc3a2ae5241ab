// What steps of a run take in a narrow type and in f32, and what follows from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/recipe/precision.h"

namespace ringlet::train {

struct PrecisionTimes {
  Precision narrow = Precision::bf16;  ///< or f16
  /// Of each timed step, by the first rank's clock. Both empty: nothing was timed.
  std::vector<double> narrow_seconds{}, f32_seconds{};
  std::int64_t samples = 0;          ///< of a replica in each of them
  std::int64_t samples_of_step = 0;  ///< of a replica in a step of the run
  std::string busy{};                ///< what other work did meanwhile; empty: little
  std::string why_not{};             ///< it was not timed; empty: it was

  bool operator==(const PrecisionTimes&) const = default;
};

enum class Faster : std::uint8_t { narrow, f32, neither };

/// Which one is clearly faster: the middle of its steps lies below the quickest of the other's, by
/// a twentieth; beside other work, by three tenths. `neither` too where nothing was timed.
Faster faster_of(const PrecisionTimes& times);

/// "bf16 takes 12.1 ms a step here and f32 10.4 ms: f32 is faster"
std::string in_words(const PrecisionTimes& times);

/// As one text for other processes, and back.
std::string to_text(const PrecisionTimes& times);
PrecisionTimes precision_times_of(const std::string& text);

}  // namespace ringlet::train
