// The kernel of kernels/adamw.h: the whole arena in one launch.
#pragma once

#include "kernels/adamw.h"
#include "kernels/elements.h"
#include "kernels/grid/pack.h"

namespace ringlet::grid {

/// `scale` and `decays` may be null.
struct AdamWUpdate {
  AdamWSpec spec;
  const float* device_rates = nullptr;  // see adamw_update()
  const float* scale = nullptr;
  const std::uint8_t* decays = nullptr;
  float* value = nullptr;
  const float* gradient = nullptr;
  float* mean = nullptr;
  float* square = nullptr;
  static constexpr int kPack = kPackOf<float>;

  bool takes_packs() const { return grid::takes_packs<kPack>(value, gradient, mean, square); }

  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const bool decay = decays == nullptr || decays[pack * kWidth / kDecayBlock] != 0;
    const element::AdamWRates rates{
        device_rates[0], spec.beta2,      spec.square_share, decay ? device_rates[1] : 0.0F,
        device_rates[2], device_rates[3], spec.epsilon};
    const float factor = scale == nullptr ? 1.0F : *scale;
    if (factor == 0.0F) return;
    const Pack<float, kWidth> g = load_pack<kWidth>(gradient, pack);
    Pack<float, kWidth> values = load_pack<kWidth>(value, pack);
    Pack<float, kWidth> means = load_pack<kWidth>(mean, pack);
    Pack<float, kWidth> squares = load_pack<kWidth>(square, pack);
    for (int i = 0; i < kWidth; ++i) {
      element::adamw_step(rates, factor * g[i], means[i], squares[i], values[i]);
    }
    store_pack(mean, pack, means);
    store_pack(square, pack, squares);
    store_pack(value, pack, values);
  }
};

/// Floor: reads 16 M bytes, writes 12 M.
template <class Grid>
void adamw_update(Grid&& grid, const AdamWSpec& spec, const ConstView& rates, const View& value,
                  const ConstView& gradient, const View& mean, const View& square,
                  const ConstView& scale = {}, const ConstView& decays = {}) {
  grid.for_each_pack("adamw_update", value.count(),
                     AdamWUpdate{spec, rates.f32(), scale.absent() ? nullptr : scale.f32(),
                                 decays.absent() ? nullptr : decays.as<std::uint8_t>(), value.f32(),
                                 gradient.f32(), mean.f32(), square.f32()});
}

}  // namespace ringlet::grid
