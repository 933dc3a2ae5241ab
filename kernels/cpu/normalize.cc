// The CPU's implementations of kernels/normalize.h and kernels/gather_batch.h.
#include "kernels/normalize.h"

#include <algorithm>
#include <string>

#include "kernels/cpu/loops.h"
#include "kernels/elements.h"
#include "kernels/gather_batch.h"

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

void check_position(const char* operation, const BatchPosition& position, std::int64_t samples,
                    std::int64_t size) {
  if (position.epoch >= 0 && 0 <= position.first && position.first + samples <= size) return;
  throw ContractError(std::string(operation) + ": positions " + std::to_string(position.first) +
                      " to " + std::to_string(position.first + samples) + " of epoch " +
                      std::to_string(position.epoch) + " do not lie within the data set's " +
                      std::to_string(size) + " samples");
}

}  // namespace

void normalize_forward(CpuStream& stream, const Normalization& normalization,
                       const ConstView& x_view, const View& y_view) {
  const auto* x = x_view.as<std::uint8_t>();
  float* y = y_view.f32();
  const auto convert = [normalization](std::uint8_t value) {
    return element::normalize(value, normalization.mean, normalization.deviation);
  };
  if (in_lanes(y_view)) {
    into_lanes(stream, x_view.shape(), x, convert, y);
  } else {
    for_each_element(stream, x_view.count(), [=](std::int64_t i) { y[i] = convert(x[i]); });
  }
}

void relayout(CpuStream& stream, const ConstView& x_view, const View& y_view) {
  const float* x = x_view.f32();
  float* y = y_view.f32();
  const bool from_lanes = in_lanes(x_view), to_lanes = in_lanes(y_view);
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

void gather_batch(CpuStream& stream, const GatherSpec& spec, const ConstView& images_view,
                  const ConstView& labels_view, const ConstView& position_view, const View& y_view,
                  const View& batch_labels_view) {
  constexpr const char* kName = "gather_batch";
  const bool lanes = in_lanes(y_view);
  const BatchPosition position = *position_of(position_view);
  const std::int64_t samples = y_view.shape()[0], pixels = y_view.shape().count_per_sample();
  check_position(kName, position, samples, spec.sampler.size());
  const auto* images = images_view.as<std::uint8_t>();
  const auto* labels = labels_view.as<std::int32_t>();
  float* y = y_view.f32();
  auto* batch_labels = batch_labels_view.as<std::int32_t>();
  const std::int64_t stride = lanes ? kLanes : 1;
  const std::int64_t slots = lanes ? lane_blocks(samples) * kLanes : samples;
  for_each_item(stream, slots, [=](std::int64_t n) {
    float* out = y + (lanes ? n / kLanes * kLanes * pixels + n % kLanes : n * pixels);
    if (n >= samples) {
      for (std::int64_t p = 0; p < pixels; ++p) out[p * stride] = 0;
      return;
    }
    const std::int64_t sample = spec.sampler.index(position.epoch, position.first + n);
    const std::uint8_t* image = images + sample * pixels;
    batch_labels[n] = labels[sample];
    for (std::int64_t p = 0; p < pixels; ++p) out[p * stride] = spec.scale(image[p]);
  });
}

}  // namespace ringlet::impl
