#include "kernels/cpu/lanes/positions.h"

namespace ringlet::lanes {

Positions Positions::of_output(const Axis& axis) {
  Positions p;
  p.axis_ = axis;
  p.count_ = axis.out;
  p.taps_ = axis.kernel;
  return p;
}

Positions Positions::of_input(const Axis& axis, std::int64_t kind) {
  Positions p;
  p.axis_ = axis;
  p.of_input_ = true;
  p.step_ = axis.stride;
  p.first_ = ((kind - axis.padding) % axis.stride + axis.stride) % axis.stride;
  if (p.first_ < axis.in) p.count_ = (axis.in - p.first_ + axis.stride - 1) / axis.stride;
  for (std::int64_t tap = axis.kernel - 1; tap >= 0; --tap) {
    if ((tap * axis.dilation - kind) % axis.stride != 0) continue;
    p.tap_step_ = p.first_tap_ - tap;
    p.first_tap_ = tap;
    ++p.taps_;
  }
  return p;
}

std::int64_t Positions::source(std::int64_t i, std::int64_t t) const {
  if (!of_input_) {
    const std::int64_t in = position(i) * axis_.stride - axis_.padding + tap(t) * axis_.dilation;
    return in < axis_.in ? in : -1;
  }
  const std::int64_t scaled = position(i) + axis_.padding - tap(t) * axis_.dilation;
  return scaled >= 0 && scaled / axis_.stride < axis_.out ? scaled / axis_.stride : -1;
}

void list_sources(const Positions& rows, const Positions& cols, std::int64_t width, std::int64_t i,
                  std::int64_t j, std::int64_t run, std::int64_t* offsets) {
  for (std::int64_t position = j; position < j + run; ++position) {
    for (std::int64_t r = 0; r < rows.taps(); ++r) {
      const std::int64_t row = rows.source(i, r);
      for (std::int64_t c = 0; c < cols.taps(); ++c) {
        const std::int64_t col = cols.source(position, c);
        *offsets++ = row < 0 || col < 0 ? -1 : (row * width + col) * kLanes;
      }
    }
  }
}

}  // namespace ringlet::lanes
