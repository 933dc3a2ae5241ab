// The kernels of kernels/classify.h. Counts are integers, and the best of a row is the same in any
// order, so results do not depend on the order in which threads compare and blocks add.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/elements.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// Counts the row's label, and once more if its largest logit is there: the first of equal ones,
/// and never a NaN. A warp has a row. A label outside the classes counts nowhere: a kernel cannot
/// throw.
template <class T, class Adder>
struct ArgmaxCount {
  static constexpr int kThreads = 256;
  static constexpr int kRowThreads = 32;
  static constexpr int kRowsPerBlock = kThreads / kRowThreads;
  static constexpr int kSteps = tree_steps(kRowThreads);
  static constexpr int kPhases = kSteps + 2;
  struct Best {
    float value;
    std::int32_t at;  // -1: nothing yet
  };
  struct Shared {
    Best best[kThreads];
  };
  struct Better {
    RINGLET_HOST_DEVICE Best operator()(const Best& a, const Best& b) const {
      if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
      const bool second = b.value > a.value || (b.value == a.value && b.at < a.at);
      return second ? b : a;
    }
  };

  Adder adder;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  const T* logits = nullptr;
  const std::int32_t* labels = nullptr;
  std::int32_t* count = nullptr;

  RINGLET_HOST_DEVICE void phase(int k, const ThreadIndex& index, Shared& shared) const {
    const int lane = index.thread % kRowThreads;
    const std::int64_t row = index.block * kRowsPerBlock + index.thread / kRowThreads;
    if (row >= rows) return;
    Best* best = shared.best + (index.thread - lane);
    if (k == 0) {
      best[lane] = lane_best(logits + row * classes, lane);
    } else if (k <= kSteps) {
      tree_step(best, kRowThreads, k - 1, lane, Better{});
    } else if (lane == 0) {
      add(labels[row], best[0].at);
    }
  }

 private:
  RINGLET_HOST_DEVICE Best lane_best(const T* row, int lane) const {
    Best best{0, -1};
    for (auto k = static_cast<std::int32_t>(lane); k < classes; k += kRowThreads) {
      const float value = load(row[k]);
      if (value == value && (best.at < 0 || value > best.value)) best = {value, k};
    }
    return best;
  }
  RINGLET_HOST_DEVICE void add(std::int32_t label, std::int32_t predicted) const {
    if (label < 0 || label >= classes) return;
    adder(count + 2 * label, 1);
    if (predicted == label) adder(count + 2 * label + 1, 1);
  }
};

/// Floor: reads 4 N K bytes.
template <class Grid>
void argmax_count(Grid&& grid, const ConstView& logits, const ConstView& labels,
                  const View& count) {
  reduction::visit_activations(logits.dtype(), [&]<class T>(T) {
    using Count = ArgmaxCount<T, typename std::remove_reference_t<Grid>::Adder>;
    const std::int64_t rows = logits.shape()[0];
    grid.run_blocks("argmax_count", (rows + Count::kRowsPerBlock - 1) / Count::kRowsPerBlock,
                    Count{{},
                          rows,
                          logits.shape()[1],
                          logits.as<T>(),
                          labels.as<std::int32_t>(),
                          count.as<std::int32_t>()});
  });
}

template <class T>
struct CountNonfinite : TeamSum<CountNonfinite<T>, std::int32_t> {
  static constexpr int kPack = kPackOf<T>;
  static constexpr int kThreads = TeamSum<CountNonfinite, std::int32_t>::kThreads;

  std::int64_t packs = 0;  // that x can be read in; the elements behind them come one by one
  std::int64_t elements = 0;
  const T* x = nullptr;
  std::int32_t* count = nullptr;

  RINGLET_HOST_DEVICE std::int32_t share(const ThreadIndex& index) const {
    const std::int64_t first = index.block * kThreads + index.thread;
    const std::int64_t stride = index.blocks * kThreads;
    std::int32_t found = 0;
    for (std::int64_t i = first; i < packs; i += stride) found += in_pack<kPack>(i);
    for (std::int64_t i = kPack * packs + first; i < elements; i += stride) found += in_pack<1>(i);
    return found;
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t, std::int32_t found) const { *count = found; }
  template <int kWidth>
  RINGLET_HOST_DEVICE std::int32_t in_pack(std::int64_t pack) const {
    const auto values = load_pack<kWidth>(x, pack);
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
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    using Count = CountNonfinite<T>;
    const std::int64_t elements = x.storage();
    const std::int64_t packs = takes_packs<Count::kPack>(x.as<T>()) ? elements / Count::kPack : 0;
    const std::int64_t threads = packs > 0 ? packs : elements;
    const std::int64_t blocks = std::clamp<std::int64_t>(
        (threads + Count::kThreads - 1) / Count::kThreads, 1, grid.blocks_to_fill());
    auto* partial = grid.template workspace_of<std::int32_t>(blocks);
    grid.run_teams(
        "count_nonfinite", 1,
        Count{{Divisor(blocks), partial}, packs, elements, x.as<T>(), count.as<std::int32_t>()});
  });
}

}  // namespace ringlet::grid
