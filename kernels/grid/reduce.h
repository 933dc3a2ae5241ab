// The kernel of kernels/reduce.h.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/reduce.h"
#include "kernels/reduction.h"

namespace ringlet::grid {

template <class T, class Combine>
struct Reduce {
  const T* xs[kMaxReduced];
  T* ys[kMaxReduced];
  int sources, targets, divisor;

  bool takes_packs() const {
    return std::all_of(xs, xs + sources, [](const T* x) { return grid::takes_packs(x); }) &&
           std::all_of(ys, ys + targets, [](const T* y) { return grid::takes_packs(y); });
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    constexpr Combine kCombine;
    Pack<reduction::Accumulator<T>, kWidth> sum{};
    const auto first = load_pack<kWidth>(xs[0], pack);
    for (int i = 0; i < kWidth; ++i) sum[i] = reduction::load(first[i]);
    for (int k = 1; k < sources; ++k) {
      const auto next = load_pack<kWidth>(xs[k], pack);
      for (int i = 0; i < kWidth; ++i) sum[i] = kCombine(sum[i], reduction::load(next[i]));
    }
    Pack<T, kWidth> result{};
    for (int i = 0; i < kWidth; ++i) {
      if (divisor > 1) sum[i] /= static_cast<reduction::Accumulator<T>>(divisor);
      result[i] = reduction::round_to<T>(sum[i]);
    }
    for (int k = 0; k < targets; ++k) store_pack(ys[k], pack, result);
  }
};

/// Floor: reads every source once, writes every target once.
template <class Grid>
void reduce(Grid&& grid, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
            const ReduceOptions& options) {
  reduction::visit(op, ys[0].dtype(), [&]<class T, class Combine>(T, Combine) {
    Reduce<T, Combine> kernel{};
    kernel.sources = static_cast<int>(xs.size());
    kernel.targets = static_cast<int>(ys.size());
    kernel.divisor = op == ReduceOp::mean ? options.divisor : 1;
    std::transform(xs.begin(), xs.end(), kernel.xs,
                   [](const auto& x) { return x.template as<T>(); });
    std::transform(ys.begin(), ys.end(), kernel.ys,
                   [](const auto& y) { return y.template as<T>(); });
    grid.for_each_pack("reduce", ys[0].storage(), kernel);
  });
}

}  // namespace ringlet::grid
