#include "kernels/cpu/im2col.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ringlet::impl {

namespace {

/// a / b, rounded up; a >= 0. Most strides are 1, and a division costs as much as copying a row.
std::int64_t divide_up(std::int64_t a, std::int64_t b) { return b == 1 ? a : (a + b - 1) / b; }

struct Range {
  std::int64_t begin;
  std::int64_t end;
};

/// The outputs, of `outputs`, that see a pixel of the image and no padding in one dimension: those
/// whose input coordinate `o * stride + shift` lies in [0, extent).
Range inside(std::int64_t shift, std::int64_t stride, std::int64_t extent, std::int64_t outputs) {
  const std::int64_t begin = shift >= 0 ? 0 : divide_up(-shift, stride);
  const std::int64_t end = extent <= shift ? 0 : divide_up(extent - shift, stride);
  return {std::min(begin, outputs), std::clamp(end, std::min(begin, outputs), outputs)};
}

/// One image under one element (c, p, q) of the window: a block of out_h x out_w columns.
struct Block {
  std::int64_t columns;  // offset of the block
  Range rows;            // output rows that see the image
  Range outputs;         // outputs of such a row that see the image
  std::int64_t first;    // offset in the image of what the first of them sees
};

/// Calls visit(block) for every block, in the order in which they lie in the columns.
template <class F>
void for_each_block(const ColumnGeometry& g, std::int64_t images, F visit) {
  const Conv2dSpec& spec = g.spec;
  std::int64_t columns = 0;
  for (std::int64_t c = 0; c < g.channels; ++c) {
    for (std::int64_t p = 0; p < g.window_h; ++p) {
      const std::int64_t shift_h = p * spec.dilation.h - spec.padding.h;
      const Range rows = inside(shift_h, spec.stride.h, g.height, g.out_h);
      for (std::int64_t q = 0; q < g.window_w; ++q) {
        const std::int64_t shift_w = q * spec.dilation.w - spec.padding.w;
        const Range outputs = inside(shift_w, spec.stride.w, g.width, g.out_w);
        const std::int64_t h = rows.begin * spec.stride.h + shift_h;
        const std::int64_t w = outputs.begin * spec.stride.w + shift_w;
        for (std::int64_t n = 0; n < images; ++n, columns += g.pixels()) {
          const std::int64_t plane = n * g.image_stride + c * g.height * g.width;
          visit(Block{columns, rows, outputs, plane + h * g.width + w});
        }
      }
    }
  }
}

/// A few rows of few floats, whose calls to memcpy would cost more than the copying.
struct Rows {
  const float* from;
  std::int64_t from_stride;
  float* to;
  std::int64_t to_stride;
  std::int64_t count;
  std::int64_t width;
};

constexpr std::int64_t kStep = 4;  // floats that are moved at once
using Four [[gnu::vector_size(16)]] = float;

void copy_four(const float* from, float* to) { std::memcpy(to, from, sizeof(Four)); }

void add_four(const float* from, float* to) {
  Four sum, term;
  std::memcpy(&sum, to, sizeof(Four));
  std::memcpy(&term, from, sizeof(Four));
  sum += term;
  std::memcpy(to, &sum, sizeof(Four));
}

/// to = from. kSteps = (width - 1) / 4; the last four floats overlap those before.
template <int kSteps>
void copy_rows(const Rows& rows) {
  const std::int64_t last = rows.width - kStep;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    const float* from = rows.from + i * rows.from_stride;
    float* to = rows.to + i * rows.to_stride;
    for (int step = 0; step < kSteps; ++step) {
      copy_four(from + step * kStep, to + step * kStep);
    }
    copy_four(from + last, to + last);
  }
}

void copy_any_rows(const Rows& rows) {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    const float* from = rows.from + i * rows.from_stride;
    std::copy(from, from + rows.width, rows.to + i * rows.to_stride);
  }
}

/// to += from. kSteps = width / 4; the floats left over one by one.
template <int kSteps>
void add_rows(const Rows& rows) {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    const float* from = rows.from + i * rows.from_stride;
    float* to = rows.to + i * rows.to_stride;
    for (int step = 0; step < kSteps; ++step) add_four(from + step * kStep, to + step * kStep);
    for (std::int64_t j = kSteps * kStep; j < rows.width; ++j) to[j] += from[j];
  }
}

void add_any_rows(const Rows& rows) {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    const float* from = rows.from + i * rows.from_stride;
    float* to = rows.to + i * rows.to_stride;
#pragma omp simd
    for (std::int64_t j = 0; j < rows.width; ++j) to[j] += from[j];
  }
}

using RowsFunction = void (*)(const Rows&);

RowsFunction copier(std::int64_t width) {
  constexpr RowsFunction kCopiers[] = {copy_rows<0>, copy_rows<1>, copy_rows<2>, copy_rows<3>,
                                       copy_rows<4>, copy_rows<5>, copy_rows<6>, copy_rows<7>};
  if (width < kStep || width > kStep * std::ssize(kCopiers)) {
    return copy_any_rows;
  }
  return kCopiers[(width - 1) / kStep];
}

RowsFunction adder(std::int64_t width) {
  constexpr RowsFunction kAdders[] = {add_rows<0>, add_rows<1>, add_rows<2>, add_rows<3>,
                                      add_rows<4>, add_rows<5>, add_rows<6>, add_rows<7>};
  if (width >= kStep * std::ssize(kAdders)) return add_any_rows;
  return kAdders[width / kStep];
}

/// Sets to zero what lies in a block outside of `rows` and `outputs`.
void clear_padding(const ColumnGeometry& g, const Block& block, float* columns) {
  float* to = columns + block.columns;
  if (block.rows.begin != 0 || block.rows.end != g.out_h) {
    std::fill(to, to + block.rows.begin * g.out_w, 0.0F);
    std::fill(to + block.rows.end * g.out_w, to + g.pixels(), 0.0F);
  }
  if (block.outputs.begin == 0 && block.outputs.end == g.out_w) return;
  for (std::int64_t i = block.rows.begin; i < block.rows.end; ++i) {
    std::fill(to + i * g.out_w, to + i * g.out_w + block.outputs.begin, 0.0F);
    std::fill(to + i * g.out_w + block.outputs.end, to + (i + 1) * g.out_w, 0.0F);
  }
}

}  // namespace

void im2col(const ColumnGeometry& geometry, const float* x, std::int64_t images, float* columns) {
  for_each_block(geometry, images, [&geometry, x, columns](const Block& block) {
    const std::int64_t stride = geometry.spec.stride.w, out_w = geometry.out_w;
    clear_padding(geometry, block, columns);
    const Rows rows{x + block.first,
                    geometry.spec.stride.h * geometry.width,
                    columns + block.columns + block.rows.begin * out_w + block.outputs.begin,
                    out_w,
                    block.rows.end - block.rows.begin,
                    block.outputs.end - block.outputs.begin};
    if (stride == 1) return copier(rows.width)(rows);
    for (std::int64_t i = 0; i < rows.count; ++i) {
      for (std::int64_t j = 0; j < rows.width; ++j) {
        rows.to[i * rows.to_stride + j] = rows.from[i * rows.from_stride + j * stride];
      }
    }
  });
}

void col2im_add(const ColumnGeometry& geometry, const float* columns, std::int64_t images,
                float* dx) {
  for_each_block(geometry, images, [&geometry, columns, dx](const Block& block) {
    const std::int64_t stride = geometry.spec.stride.w, out_w = geometry.out_w;
    const Rows rows{columns + block.columns + block.rows.begin * out_w + block.outputs.begin,
                    out_w,
                    dx + block.first,
                    geometry.spec.stride.h * geometry.width,
                    block.rows.end - block.rows.begin,
                    block.outputs.end - block.outputs.begin};
    if (stride == 1) return adder(rows.width)(rows);
    for (std::int64_t i = 0; i < rows.count; ++i) {
      for (std::int64_t j = 0; j < rows.width; ++j) {
        rows.to[i * rows.to_stride + j * stride] += rows.from[i * rows.from_stride + j];
      }
    }
  });
}

}  // namespace ringlet::impl
