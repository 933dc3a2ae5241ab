// The kernel of kernels/cast.h.
#pragma once

#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/reduction.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

template <class From, class To>
struct Cast {
  const From* x;
  To* y;

  bool takes_packs() const { return grid::takes_packs(x) && grid::takes_packs(y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto in = load_pack<kWidth>(x, pack);
    Pack<To, kWidth> out{};
    for (int i = 0; i < kWidth; ++i) out[i] = reduction::round_to<To>(reduction::load(in[i]));
    store_pack(y, pack, out);
  }
};

/// Floor: reads every element once, writes every element once: 6 N bytes.
template <class Grid>
void cast(Grid& grid, const ConstView& x, const View& y) {
  reduction::visit_cast(x.dtype(), y.dtype(), [&]<class From, class To>(From, To) {
    grid.for_each_pack("cast", y.storage(), Cast<From, To>{x.as<From>(), y.as<To>()});
  });
}

}  // namespace ringlet::grid
