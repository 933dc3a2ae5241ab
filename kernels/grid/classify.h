// The kernels of kernels/classify.h. Counts are integers, so the result does not depend on the
// order in which blocks add.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/elements.h"
#include "kernels/grid/elementwise.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// A thread a row, which it reads through the cache. A label outside the classes counts nowhere:
/// a kernel cannot throw.
template <class Adder>
struct ArgmaxCount {
  Adder adder;
  std::int64_t classes = 0;
  const float* logits = nullptr;
  const std::int32_t* labels = nullptr;
  std::int32_t* count = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t row) const {
    const std::int32_t label = labels[row];
    if (label < 0 || label >= classes) return;
    adder(count + 2 * label, 1);
    if (argmax(logits + row * classes) == label) adder(count + 2 * label + 1, 1);
  }

 private:
  /// The first of the largest; -1 if all are NaN.
  RINGLET_HOST_DEVICE std::int64_t argmax(const float* row) const {
    std::int64_t best = -1;
    float largest = 0;
    for (std::int64_t k = 0; k < classes; ++k) {
      const float value = row[k];
      if (value != value || (best >= 0 && value <= largest)) continue;
      best = k;
      largest = value;
    }
    return best;
  }
};

/// Floor: reads 4 N K bytes.
template <class Grid>
void argmax_count(Grid&& grid, const ConstView& logits, const ConstView& labels,
                  const View& count) {
  using Adder = typename std::remove_reference_t<Grid>::Adder;
  grid.for_each("argmax_count", logits.shape()[0],
                ArgmaxCount<Adder>{{},
                                   logits.shape()[1],
                                   logits.f32(),
                                   labels.as<std::int32_t>(),
                                   count.as<std::int32_t>()});
}

template <class Adder>
struct CountNonfinite : BlockSum<CountNonfinite<Adder>, std::int32_t> {
  static constexpr int kThreads = BlockSum<CountNonfinite, std::int32_t>::kThreads;

  Adder adder;
  std::int64_t packs = 0;  // that x can be read in; the elements behind them come one by one
  std::int64_t elements = 0;
  const float* x = nullptr;
  std::int32_t* count = nullptr;

  RINGLET_HOST_DEVICE std::int32_t share(const Place& place) const {
    const std::int64_t first = place.block * kThreads + place.thread;
    const std::int64_t stride = place.blocks * kThreads;
    std::int32_t found = 0;
    for (std::int64_t i = first; i < packs; i += stride) found += in_pack<kPack>(i);
    for (std::int64_t i = kPack * packs + first; i < elements; i += stride) found += in_pack<1>(i);
    return found;
  }
  RINGLET_HOST_DEVICE void finish(const Place&, std::int32_t found) const {
    if (found != 0) adder(count, found);
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE std::int32_t in_pack(std::int64_t pack) const {
    const Pack<float, kWidth> values = load_pack<kWidth>(x, pack);
    std::int32_t found = 0;
    for (int i = 0; i < kWidth; ++i) {
      found += element::is_nonfinite(std::bit_cast<std::uint32_t>(values[i])) ? 1 : 0;
    }
    return found;
  }
};

/// Floor: reads 4 N bytes.
template <class Grid>
void count_nonfinite(Grid&& grid, const ConstView& x, const View& count) {
  using Count = CountNonfinite<typename std::remove_reference_t<Grid>::Adder>;
  const std::int64_t elements = x.storage();
  const std::int64_t packs = takes_packs(x.f32()) ? elements / kPack : 0;
  const std::int64_t threads = packs > 0 ? packs : elements;
  fill(grid, 0, count);
  grid.run_blocks(
      "count_nonfinite",
      std::min((threads + Count::kThreads - 1) / Count::kThreads, grid.blocks_to_fill()),
      Count{{}, {}, packs, elements, x.f32(), count.as<std::int32_t>()});
}

}  // namespace ringlet::grid
