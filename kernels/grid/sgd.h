// The kernel of kernels/sgd.h: the whole arena in one launch.
#pragma once

#include <limits>

#include "kernels/elements.h"
#include "kernels/grid/pack.h"
#include "kernels/sgd.h"

namespace ringlet::grid {

/// `velocity`, `scale` and `decays` may be null.
struct SgdUpdate {
  SgdSpec spec;
  const float* device_rates = nullptr;  // learning rate, momentum
  float* value = nullptr;
  const float* gradient = nullptr;
  float* velocity = nullptr;
  const float* scale = nullptr;
  const std::uint8_t* decays = nullptr;
  static constexpr int kPack = kPackOf<float>;

  bool takes_packs() const { return grid::takes_packs<kPack>(value, gradient, velocity); }

  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const bool decay = decays == nullptr || decays[pack * kWidth / kDecayBlock] != 0;
    const element::SgdRates rates{device_rates[0], device_rates[1],
                                  decay ? spec.weight_decay : 0.0F, spec.nesterov};
    const float factor = scale == nullptr ? 1.0F : *scale;
    if (factor == 0.0F) return;
    const Pack<float, kWidth> g = load_pack<kWidth>(gradient, pack);
    Pack<float, kWidth> values = load_pack<kWidth>(value, pack);
    Pack<float, kWidth> velocities{};
    if (velocity != nullptr) velocities = load_pack<kWidth>(velocity, pack);
    for (int i = 0; i < kWidth; ++i) {
      element::sgd_step(rates, factor * g[i], velocities[i], values[i]);
    }
    if (velocity != nullptr) {
      store_pack(velocity, pack, velocities);
    } else if (rates.momentum != 0) {  // a kernel cannot throw; what it cannot do must show
      for (int i = 0; i < kWidth; ++i) values[i] = std::numeric_limits<float>::quiet_NaN();
    }
    store_pack(value, pack, values);
  }
};

/// Floor: reads 12 M bytes, writes 8 M; without velocities, 8 M and 4 M.
template <class Grid>
void sgd_update(Grid&& grid, const SgdSpec& spec, const ConstView& rates, const View& value,
                const ConstView& gradient, const View& velocity, const ConstView& scale = {},
                const ConstView& decays = {}) {
  grid.for_each_pack("sgd_update", value.count(),
                     SgdUpdate{spec, rates.f32(), value.f32(), gradient.f32(),
                               velocity.absent() ? nullptr : velocity.f32(),
                               scale.absent() ? nullptr : scale.f32(),
                               decays.absent() ? nullptr : decays.as<std::uint8_t>()});
}

}  // namespace ringlet::grid
