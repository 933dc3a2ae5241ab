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
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const {
    const auto takes = [](const T* data) { return grid::takes_packs<kPack>(data); };
    return std::all_of(xs, xs + sources, takes) && std::all_of(ys, ys + targets, takes);
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    constexpr Combine kCombine;
    auto sum = load_pack<kWidth>(xs[0], pack);
    for (int k = 1; k < sources; ++k) {
      const auto next = load_pack<kWidth>(xs[k], pack);
      for (int i = 0; i < kWidth; ++i) sum[i] = kCombine(sum[i], next[i]);
    }
    for (int i = 0; i < kWidth && divisor > 1; ++i) sum[i] /= static_cast<Wide<T>>(divisor);
    for (int k = 0; k < targets; ++k) store_pack(ys[k], pack, sum);
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
