#include "kernels/cpu/im2col.h"

#include <algorithm>
#include <cstring>

namespace ringlet::impl {

namespace {

/// One row of an output image under one element of the window: outputs [begin, end) see pixels
/// first, first + stride, ...; the others see padding.
struct Segment {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t first;  // offset in the image of what output `begin` sees
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Outputs whose input coordinate `o * stride + shift` lies in [0, extent).
std::pair<std::int64_t, std::int64_t> inside(std::int64_t shift, std::int64_t stride,
                                             std::int64_t extent, std::int64_t outputs) {
  const std::int64_t begin = shift >= 0 ? 0 : divide_up(-shift, stride);
  const std::int64_t end = extent <= shift ? 0 : divide_up(extent - shift, stride);
  return {std::min(begin, outputs), std::max(std::min(begin, outputs), std::min(end, outputs))};
}

/// Calls visit(row, segment, image_offset) for every row (c, p, q) of the columns, image and output
/// row, in the order in which they lie in `columns`.
template <class F>
void for_each_segment(const ColumnGeometry& g, std::int64_t images, F visit) {
  const Conv2dSpec& spec = g.spec;
  std::int64_t to = 0;
  for (std::int64_t c = 0; c < g.channels; ++c) {
    for (std::int64_t p = 0; p < g.window_h; ++p) {
      for (std::int64_t q = 0; q < g.window_w; ++q) {
        const std::int64_t shift_w = q * spec.dilation.w - spec.padding.w;
        const auto [begin, end] = inside(shift_w, spec.stride.w, g.width, g.out_w);
        for (std::int64_t n = 0; n < images; ++n) {
          const std::int64_t plane = n * g.image_stride + c * g.height * g.width;
          for (std::int64_t i = 0; i < g.out_h; ++i, to += g.out_w) {
            const std::int64_t h = i * spec.stride.h - spec.padding.h + p * spec.dilation.h;
            const bool empty = h < 0 || h >= g.height;
            const std::int64_t first = plane + h * g.width + begin * spec.stride.w + shift_w;
            visit(to, empty ? Segment{0, 0, 0} : Segment{begin, end, first});
          }
        }
      }
    }
  }
}

/// memcpy for a few floats: four at a time, the last four overlapping those before.
void copy_few(const float* from, std::int64_t n, float* to) {
  constexpr std::int64_t kStep = 4;
  if (n < kStep) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (std::int64_t i = 0; i < n - kStep; i += kStep) {
    std::memcpy(to + i, from + i, kStep * sizeof(float));
  }
  std::memcpy(to + n - kStep, from + n - kStep, kStep * sizeof(float));
}

}  // namespace

void im2col(const ColumnGeometry& geometry, const float* x, std::int64_t images, float* columns) {
  const std::int64_t stride = geometry.spec.stride.w, width = geometry.out_w;
  for_each_segment(geometry, images, [=](std::int64_t to, const Segment& segment) {
    float* row = columns + to;
    const float* from = x + segment.first;
    for (std::int64_t j = 0; j < segment.begin; ++j) row[j] = 0;
    if (stride == 1) {
      copy_few(from, segment.end - segment.begin, row + segment.begin);
    } else {
      for (std::int64_t j = segment.begin; j < segment.end; ++j) {
        row[j] = from[(j - segment.begin) * stride];
      }
    }
    for (std::int64_t j = segment.end; j < width; ++j) row[j] = 0;
  });
}

void col2im_add(const ColumnGeometry& geometry, const float* columns, std::int64_t images,
                float* dx) {
  const std::int64_t stride = geometry.spec.stride.w;
  for_each_segment(geometry, images, [=](std::int64_t from, const Segment& segment) {
    const float* row = columns + from + segment.begin;
    float* to = dx + segment.first;
    const std::int64_t n = segment.end - segment.begin;
    if (stride == 1) {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) to[j] += row[j];
    } else {
      for (std::int64_t j = 0; j < n; ++j) to[j * stride] += row[j];
    }
  });
}

}  // namespace ringlet::impl
