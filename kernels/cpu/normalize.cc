#include "kernels/normalize.h"

#include <algorithm>

#include "kernels/cpu/loops.h"
#include "kernels/elements.h"

namespace ringlet::impl {

namespace {

/// y (lanes) = convert(x) (nchw), and 0 in the lanes beyond the batch.
template <class T, class F>
void into_lanes(CpuStream& stream, const Shape& shape, const T* x, F convert, float* y) {
  const std::int64_t samples = shape[0], features = shape.count_per_sample();
  for_each_item(stream, lane_blocks(samples), [=](std::int64_t block) {
    const T* from = x + block * kLanes * features;
    float* to = y + block * kLanes * features;
    const std::int64_t used = std::min(kLanes, samples - block * kLanes);
    for (std::int64_t f = 0; f < features; ++f) {
      for (std::int64_t lane = 0; lane < used; ++lane) {
        to[f * kLanes + lane] = convert(from[lane * features + f]);
      }
      for (std::int64_t lane = used; lane < kLanes; ++lane) to[f * kLanes + lane] = 0;
    }
  });
}

/// y (nchw) = x (lanes).
void out_of_lanes(CpuStream& stream, const Shape& shape, const float* x, float* y) {
  const std::int64_t samples = shape[0], features = shape.count_per_sample();
  for_each_item(stream, samples, [=](std::int64_t n) {
    const float* from = x + n / kLanes * kLanes * features + n % kLanes;
    for (std::int64_t f = 0; f < features; ++f) y[n * features + f] = from[f * kLanes];
  });
}

/// y = x, both lanes; the lanes beyond the batch become 0.
void lanes_to_lanes(CpuStream& stream, const Shape& shape, const float* x, float* y) {
  const std::int64_t samples = shape[0], features = shape.count_per_sample();
  for_each_element(stream, lane_blocks(samples) * features * kLanes, [=](std::int64_t i) {
    const std::int64_t n = i / (features * kLanes) * kLanes + i % kLanes;
    y[i] = n < samples ? x[i] : 0.0F;
  });
}

}  // namespace

void normalize_forward(CpuStream& stream, const Normalization& normalization,
                       const ConstView& x_view, const View& y_view) {
  const auto* x = x_view.as<std::uint8_t>();
  float* y = y_view.f32();
  const auto convert = [normalization](std::uint8_t value) {
    return element::normalize(value, normalization.mean, normalization.deviation);
  };
  if (in_lanes("normalize_forward", y_view)) {
    into_lanes(stream, x_view.shape(), x, convert, y);
  } else {
    for_each_element(stream, x_view.count(), [=](std::int64_t i) { y[i] = convert(x[i]); });
  }
}

void relayout(CpuStream& stream, const ConstView& x_view, const View& y_view) {
  constexpr const char* kName = "relayout";
  const float* x = x_view.f32();
  float* y = y_view.f32();
  const bool from_lanes = in_lanes(kName, x_view), to_lanes = in_lanes(kName, y_view);
  if (from_lanes && to_lanes) {
    lanes_to_lanes(stream, x_view.shape(), x, y);
  } else if (from_lanes) {
    out_of_lanes(stream, x_view.shape(), x, y);
  } else if (to_lanes) {
    into_lanes(
        stream, x_view.shape(), x, [](float value) { return value; }, y);
  } else {
    for_each_element(stream, x_view.count(), [=](std::int64_t i) { y[i] = x[i]; });
  }
}

}  // namespace ringlet::impl
