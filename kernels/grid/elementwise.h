// The kernels of kernels/elementwise.h, over every stored element.
#pragma once

#include "kernels/grid/grid.h"
#include "kernels/grid/map.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

template <class T>
struct Fill {
  T value;
  T* y = nullptr;

  bool takes_packs() const { return grid::takes_packs(y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    Pack<T, kWidth> values{};
    for (int i = 0; i < kWidth; ++i) values[i] = value;
    store_pack(y, pack, values);
  }
};

struct Times {
  float factor;
  RINGLET_HOST_DEVICE float operator()(float x) const { return factor * x; }
};

/// Floor: writes 4 N bytes.
template <class Grid>
void fill(Grid& grid, float value, const View& y) {
  if (y.dtype() == DType::f32) {
    grid.for_each_pack("fill", y.storage(), Fill<float>{value, y.f32()});
  } else {
    grid.for_each_pack("fill", y.storage(),
                       Fill<std::int32_t>{static_cast<std::int32_t>(value), y.as<std::int32_t>()});
  }
}

/// Floor: reads 8 N bytes, writes 4 N.
template <class Grid>
void accumulate(Grid& grid, const ConstView& x, const View& y) {
  grid.for_each_pack("accumulate", y.storage(), make_map(Sum{}, y.f32(), y.f32(), x.f32()));
}

/// Floor: reads 8 N bytes, writes 4 N.
template <class Grid>
void add(Grid& grid, const ConstView& a, const ConstView& b, const View& y) {
  grid.for_each_pack("add", y.storage(), make_map(Sum{}, y.f32(), a.f32(), b.f32()));
}

/// Floor: reads 4 N bytes, 8 N with a beta, writes 4 N.
template <class Grid>
void scale(Grid& grid, float alpha, const ConstView& x, float beta, const View& y) {
  map_blended(grid, "scale", y.storage(), beta, y.f32(), Times{alpha}, x.f32());
}

}  // namespace ringlet::grid
