#include "train/loop/as_rows.h"

#include "kernels/host_copy.h"

namespace ringlet::train {

std::vector<float> as_rows(Stream& stream, const ConstView& outputs) {
  std::vector<float> stored(static_cast<std::size_t>(outputs.storage()));
  copy_to_host(stream, outputs, stored.data());
  if (outputs.layout() != Layout::lanes) return stored;
  const std::int64_t samples = outputs.shape()[0], width = outputs.shape().count_per_sample();
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(samples * width));
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t k = 0; k < width; ++k) {
      rows.push_back(
          stored[static_cast<std::size_t>((n / kLanes * width + k) * kLanes + n % kLanes)]);
    }
  }
  return rows;
}

}  // namespace ringlet::train
