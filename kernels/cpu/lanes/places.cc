#include "kernels/cpu/lanes/places.h"

namespace ringlet::lanes {

Places Places::of_output(const Axis& axis) {
  Places p;
  p.axis_ = axis;
  p.count_ = axis.out;
  p.taps_ = axis.kernel;
  return p;
}

Places Places::of_input(const Axis& axis, std::int64_t kind) {
  Places p;
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

std::int64_t Places::source(std::int64_t i, std::int64_t t) const {
  if (!of_input_) {
    const std::int64_t in = place(i) * axis_.stride - axis_.padding + tap(t) * axis_.dilation;
    return in < axis_.in ? in : -1;
  }
  const std::int64_t scaled = place(i) + axis_.padding - tap(t) * axis_.dilation;
  return scaled >= 0 && scaled / axis_.stride < axis_.out ? scaled / axis_.stride : -1;
}

void list_sources(const Places& rows, const Places& cols, std::int64_t width, std::int64_t i,
                  std::int64_t j, std::int64_t run, std::int64_t* offsets) {
  for (std::int64_t place = j; place < j + run; ++place) {
    for (std::int64_t r = 0; r < rows.taps(); ++r) {
      const std::int64_t row = rows.source(i, r);
      for (std::int64_t c = 0; c < cols.taps(); ++c) {
        const std::int64_t col = cols.source(place, c);
        *offsets++ = row < 0 || col < 0 ? -1 : (row * width + col) * kLanes;
      }
    }
  }
}

}  // namespace ringlet::lanes
