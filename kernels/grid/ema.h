// The kernel of kernels/ema.h: the whole arena in one launch.
#pragma once

#include "kernels/elements.h"
#include "kernels/ema.h"
#include "kernels/grid/pack.h"

namespace ringlet::grid {

/// `scale` may be null.
struct EmaUpdate {
  const float* device_share = nullptr;
  const float* value = nullptr;
  float* mean = nullptr;
  const float* scale = nullptr;
  static constexpr int kPack = kPackOf<float>;

  bool takes_packs() const { return grid::takes_packs<kPack>(value, mean); }

  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    if (scale != nullptr && *scale == 0.0F) return;
    const float share = *device_share;
    const Pack<float, kWidth> values = load_pack<kWidth>(value, pack);
    Pack<float, kWidth> means = load_pack<kWidth>(mean, pack);
    for (int i = 0; i < kWidth; ++i) means[i] = element::ema(share, values[i], means[i]);
    store_pack(mean, pack, means);
  }
};

/// Floor: reads 8 M bytes, writes 4 M.
template <class Grid>
void ema_update(Grid&& grid, const ConstView& share, const ConstView& value, const View& mean,
                const ConstView& scale = {}) {
  grid.for_each_pack(
      "ema_update", mean.count(),
      EmaUpdate{share.f32(), value.f32(), mean.f32(), scale.absent() ? nullptr : scale.f32()});
}

}  // namespace ringlet::grid
