// Where the outputs and pixels of a pooling lie, for the kernels of kernels/pool2d.h.
//
// I is the type of indices: 32 bits where the tensors permit, which a GPU computes with in half as
// many instructions and fewer registers.
#pragma once

#include <cstdint>

#include "kernels/grid/divisor.h"
#include "kernels/grid/pack.h"
#include "kernels/grid/pool_window.h"
#include "kernels/pool2d.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// One dimension of images and windows.
template <class I>
struct PoolAxis {
  I kernel;
  Divisor stride;
  I padding;
  Divisor pixels;
  Divisor outputs;

  RINGLET_HOST_DEVICE I pixel_count() const { return static_cast<I>(pixels.divisor()); }
  RINGLET_HOST_DEVICE I output_count() const { return static_cast<I>(outputs.divisor()); }
  RINGLET_HOST_DEVICE PoolWindow<I> window(I o) const {
    return pool_window<I>(o, kernel, static_cast<I>(stride.divisor()), padding, pixel_count());
  }
  /// The first output whose window may contain `pixel`: the smallest o with
  /// o * stride - padding + kernel > pixel.
  RINGLET_HOST_DEVICE I first_output(I pixel) const {
    const I above = pixel + padding - kernel;  // o * stride has to be larger
    return above < 0 ? 0 : stride.quotient(above) + 1;
  }
  /// One past the last output whose window begins at or before `pixel`.
  RINGLET_HOST_DEVICE I end_output(I pixel) const {
    const I last = stride.quotient(static_cast<I>(pixel + padding));
    return last < output_count() ? last + 1 : output_count();
  }
};

/// Where an output or a pixel lies: images and outputs are planes of rows.
template <class I>
struct PlanePoint {
  I plane;
  I row;
  I column;
};

template <class I>
RINGLET_HOST_DEVICE PlanePoint<I> plane_point(const Divisor& rows, const Divisor& columns, I i) {
  const I line = columns.quotient(i);
  const I plane = rows.quotient(line);
  return {plane, line - plane * static_cast<I>(rows.divisor()),
          i - line * static_cast<I>(columns.divisor())};
}

template <class I>
struct PoolGeometry {
  PoolAxis<I> h;
  PoolAxis<I> w;
  bool count_include_pad;

  PoolGeometry(const Pool2dSpec& spec, const Shape& x, const Shape& y)
      : h{spec.kernel.h, Divisor(spec.stride.h), spec.padding.h, Divisor(x[2]), Divisor(y[2])},
        w{spec.kernel.w, Divisor(spec.stride.w), spec.padding.w, Divisor(x[3]), Divisor(y[3])},
        count_include_pad(spec.count_include_pad) {}

  RINGLET_HOST_DEVICE PlanePoint<I> output(std::int64_t o) const {
    return plane_point(h.outputs, w.outputs, static_cast<I>(o));
  }
  RINGLET_HOST_DEVICE PlanePoint<I> pixel(std::int64_t i) const {
    return plane_point(h.pixels, w.pixels, static_cast<I>(i));
  }
  RINGLET_HOST_DEVICE I width() const { return w.pixel_count(); }
  /// Index of a plane's first pixel, and of its first output.
  RINGLET_HOST_DEVICE I plane_pixels(I plane) const { return plane * h.pixel_count() * width(); }
  RINGLET_HOST_DEVICE I plane_outputs(I plane) const {
    return plane * h.output_count() * w.output_count();
  }
  RINGLET_HOST_DEVICE float divisor(const PoolWindow<I>& rows, const PoolWindow<I>& columns) const {
    const I count = count_include_pad ? rows.counted * columns.counted
                                      : (rows.end - rows.begin) * (columns.end - columns.begin);
    return static_cast<float>(count);
  }
};

/// 2 x 2 windows side by side that all lie within the image, the usual ones: their four loads are
/// under way at the same time, and need no loops.
inline bool are_halves(const Pool2dSpec& spec, const Shape& x, const Shape& y) {
  return spec.kernel == Extent2{2, 2} && spec.stride == Extent2{2, 2} &&
         spec.padding == Extent2{0, 0} && 2 * y[2] <= x[2] && 2 * y[3] <= x[3];
}

/// Whether 32 bits hold every index, also one that a stride of a grid's loop has gone beyond.
inline bool has_small_indices(const Shape& x) { return x.count() < std::int64_t{1} << 30; }

/// launch(I{}), with the type of indices that a tensor of this shape needs.
template <class Launch>
void with_index_of(const Shape& shape, const Launch& launch) {
  if (has_small_indices(shape)) {
    launch(std::int32_t{});
  } else {
    launch(std::int64_t{});
  }
}

/// launch(geometry), with the type of indices that these images need.
template <class Launch>
void with_geometry(const Pool2dSpec& spec, const Shape& x, const Shape& y, Launch launch) {
  const Shape& larger = x.count() < y.count() ? y : x;  // padding may make more outputs than inputs
  with_index_of(larger, [&]<class I>(I) { launch(PoolGeometry<I>(spec, x, y)); });
}

/// An element of a tensor in nhwc: its pixel or output, counted over all samples, and its channel.
template <class I>
struct ChannelPoint {
  I pixel;
  I channel;
};

template <class I>
RINGLET_HOST_DEVICE ChannelPoint<I> channel_point(const Divisor& channels, std::int64_t element) {
  const auto i = static_cast<I>(element);
  const I pixel = channels.quotient(i);
  return {pixel, i - pixel * static_cast<I>(channels.divisor())};
}

/// The order of images in nchw: a plane is one channel's, and a thread has one element.
template <class I>
struct InPlanes {
  using Index = I;
  PoolGeometry<I> g;
  template <class T>
  static constexpr int kPackOf = 1;

  RINGLET_HOST_DEVICE ChannelPoint<I> point(std::int64_t element) const {
    return {static_cast<I>(element), 0};
  }
  /// Between a channel's neighbouring pixels.
  RINGLET_HOST_DEVICE I stride() const { return 1; }
};

/// The order of images in nhwc: a plane is a sample's, and a thread has a pack of neighbouring
/// channels, or one.
template <class I>
struct ChannelsLast {
  using Index = I;
  PoolGeometry<I> g;
  Divisor channels;
  template <class T>
  static constexpr int kPackOf = grid::kPackOf<T>;

  RINGLET_HOST_DEVICE ChannelPoint<I> point(std::int64_t element) const {
    return channel_point<I>(channels, element);
  }
  RINGLET_HOST_DEVICE I stride() const { return static_cast<I>(channels.divisor()); }
  /// Whether neighbouring channels lie in whole packs.
  template <int kWidth, class... T>
  bool takes_packs(const T*... data) const {
    return channels.divisor() % kWidth == 0 && grid::takes_packs<kWidth>(data...);
  }
};

/// launch(order), with the type of indices that these images need.
template <class Launch>
void with_order(const Pool2dSpec& spec, const ConstView& x, const Shape& y, const Launch& launch) {
  with_geometry(spec, x.shape(), y, [&]<class I>(const PoolGeometry<I>& g) {
    if (x.layout() == Layout::nhwc) {
      launch(ChannelsLast<I>{g, Divisor(x.shape()[1])});
    } else {
      launch(InPlanes<I>{g});
    }
  });
}

}  // namespace ringlet::grid
