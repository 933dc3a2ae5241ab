// The kernels of kernels/l2_norm.h: a block sums the squares of a part of fixed length, and one
// block more adds up the parts.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// The phases of a block whose threads each bring a number. In the last phase thread 0 has their
/// sum.
struct BlockSum {
  static constexpr int kThreads = 256;
  static constexpr int kSteps = tree_steps(kThreads);
  static constexpr int kPhases = kSteps + 2;
  struct Shared {
    double sums[kThreads];
  };

  template <class Share, class Finish>
  RINGLET_HOST_DEVICE static void phase(int k, int thread, Shared& shared, const Share& share,
                                        const Finish& finish) {
    if (k == 0) {
      shared.sums[thread] = share();
    } else if (k <= kSteps) {
      tree_step(shared.sums, kThreads, k - 1, thread, Sum{});
    } else if (thread == 0) {
      finish(shared.sums[0]);
    }
  }
};

/// partial[part] = sum of the squares of elements [part * kPart, (part + 1) * kPart).
struct SquareSums : BlockSum {
  static constexpr std::int64_t kPart = 16 * kPack * kThreads;  // 64 KiB

  std::int64_t elements = 0;
  bool packed = false;  // whether x may be read in packs
  const float* x = nullptr;
  double* partial = nullptr;

  RINGLET_HOST_DEVICE void phase(int k, const Place& place, Shared& shared) const {
    BlockSum::phase(
        k, place.thread, shared, [&] { return share(place); },
        [&](double sum) { partial[place.block] = sum; });
  }

 private:
  /// The thread's packs, whose elements are added in the same order however they are read.
  RINGLET_HOST_DEVICE double share(const Place& place) const {
    const std::int64_t end =
        (place.block + 1) * kPart < elements ? (place.block + 1) * kPart : elements;
    double sum = 0;
    for (std::int64_t i = place.block * kPart + kPack * place.thread; i < end;
         i += kPack * kThreads) {
      if (packed && i + kPack <= end) {
        const Pack<float, kPack> values = load_pack<kPack>(x, i / kPack);
        for (int k = 0; k < kPack; ++k) sum += square(values[k]);
      } else {
        for (std::int64_t k = i; k < end && k < i + kPack; ++k) sum += square(x[k]);
      }
    }
    return sum;
  }
  RINGLET_HOST_DEVICE static double square(float value) {
    return static_cast<double>(value) * static_cast<double>(value);
  }
};

/// norm = sqrt(sum of partial), in one block.
struct RootOfTotal : BlockSum {
  std::int64_t parts = 0;
  const double* partial = nullptr;
  float* norm = nullptr;

  RINGLET_HOST_DEVICE void phase(int k, const Place& place, Shared& shared) const {
    BlockSum::phase(
        k, place.thread, shared, [&] { return share(place); },
        [&](double sum) { *norm = static_cast<float>(std::sqrt(sum)); });
  }

 private:
  RINGLET_HOST_DEVICE double share(const Place& place) const {
    double sum = 0;
    for (std::int64_t part = place.thread; part < parts; part += kThreads) sum += partial[part];
    return sum;
  }
};

/// Floor: reads 4 N bytes.
template <class Grid>
void l2_norm(Grid& grid, const ConstView& x, const View& norm) {
  constexpr const char* kName = "l2_norm";
  const std::int64_t parts = (x.count() + SquareSums::kPart - 1) / SquareSums::kPart;
  auto* partial = grid.template workspace_of<double>(parts);
  grid.run_blocks(kName, parts, SquareSums{{}, x.count(), takes_packs(x.f32()), x.f32(), partial});
  grid.run_blocks(kName, 1, RootOfTotal{{}, parts, partial, norm.f32()});
}

}  // namespace ringlet::grid
