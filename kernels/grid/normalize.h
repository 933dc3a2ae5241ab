// The kernel of kernels/normalize.h, for nchw.
#pragma once

#include "kernels/elements.h"
#include "kernels/grid/pack.h"
#include "kernels/normalize.h"

namespace ringlet::grid {

struct NormalizePixels {
  Normalization normalization;
  const std::uint8_t* x = nullptr;
  float* y = nullptr;

  bool takes_packs() const { return grid::takes_packs(x) && grid::takes_packs(y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const Pack<std::uint8_t, kWidth> in = load_pack<kWidth>(x, pack);
    Pack<float, kWidth> out{};
    for (int i = 0; i < kWidth; ++i) {
      out[i] = element::normalize(in[i], normalization.mean, normalization.deviation);
    }
    store_pack(y, pack, out);
  }
};

/// Floor: reads N bytes, writes 4 N.
template <class Grid>
void normalize_forward(Grid& grid, const Normalization& normalization, const ConstView& x,
                       const View& y) {
  grid.for_each_pack("normalize_forward", x.count(),
                     NormalizePixels{normalization, x.as<std::uint8_t>(), y.f32()});
}

}  // namespace ringlet::grid
