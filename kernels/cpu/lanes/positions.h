// Which positions of one tensor a convolution's position in the other sees, along one axis.
#pragma once

#include <cstdint>

#include "kernels/cpu/lanes/conv2d_plan.h"

namespace ringlet::lanes {

/// Positions, `step` apart, that see the same taps.
class Positions {
 public:
  /// All positions of the output.
  static Positions of_output(const Axis& axis);
  /// Positions of the input, of kind (position + padding) % stride.
  static Positions of_input(const Axis& axis, std::int64_t kind);

  std::int64_t count() const { return count_; }
  std::int64_t step() const { return step_; }
  std::int64_t position(std::int64_t i) const { return first_ + i * step_; }
  std::int64_t taps() const { return taps_; }
  /// The position in the kernel of tap t, 0 <= t < taps().
  std::int64_t tap(std::int64_t t) const { return first_tap_ + t * tap_step_; }
  /// The other tensor's position that tap t of position(i) multiplies; -1: padding.
  std::int64_t source(std::int64_t i, std::int64_t t) const;

 private:
  Axis axis_{};
  bool of_input_ = false;
  std::int64_t first_ = 0, step_ = 1, count_ = 0;
  std::int64_t first_tap_ = 0, tap_step_ = 1, taps_ = 0;
};

/// Offsets, in floats from a plane [height][width][16], of what the positions
/// (i, j) ... (i, j + run - 1) see: offsets[position][row tap][column tap], -1 for padding.
void list_sources(const Positions& rows, const Positions& cols, std::int64_t width, std::int64_t i,
                  std::int64_t j, std::int64_t run, std::int64_t* offsets);

}  // namespace ringlet::lanes
