#include "kernels/gather_batch.h"

#include <string>

#include "kernels/cpu/loops.h"

namespace ringlet::impl {

namespace {

void check_position(const char* operation, const BatchPosition& position, std::int64_t samples,
                    std::int64_t size) {
  if (position.epoch >= 0 && 0 <= position.first && position.first + samples <= size) return;
  throw ContractError(std::string(operation) + ": positions " + std::to_string(position.first) +
                      " to " + std::to_string(position.first + samples) + " of epoch " +
                      std::to_string(position.epoch) + " do not lie within the data set's " +
                      std::to_string(size) + " samples");
}

}  // namespace

void gather_batch(CpuStream& stream, const GatherSpec& spec, const ConstView& images_view,
                  const ConstView& labels_view, const ConstView& position_view, const View& y_view,
                  const View& batch_labels_view) {
  constexpr const char* kName = "gather_batch";
  const bool lanes = in_lanes(kName, y_view);
  const BatchPosition position = *position_of(position_view);
  const std::int64_t samples = y_view.shape()[0], pixels = y_view.shape().count_per_sample();
  check_position(kName, position, samples, spec.sampler.size());
  const auto* images = images_view.as<std::uint8_t>();
  const auto* labels = labels_view.as<std::int32_t>();
  float* y = y_view.f32();
  auto* batch_labels = batch_labels_view.as<std::int32_t>();
  const std::int64_t stride = lanes ? kLanes : 1;
  const std::int64_t places = lanes ? lane_blocks(samples) * kLanes : samples;
  for_each_item(stream, places, [=](std::int64_t n) {
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
