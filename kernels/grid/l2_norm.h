// The kernel of kernels/l2_norm.h: a block sums the squares of a part of fixed length, and the last
// one adds up the parts.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/elements.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/l2_norm.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// norm = sqrt(sum of squares). Block i has elements [i * kPart, (i + 1) * kPart).
struct SquareSums : TeamSum<SquareSums, double> {
  static constexpr std::int64_t kPart = 16 * kPack * kThreads;  // 64 KiB

  std::int64_t elements = 0;
  bool packed = false;  // whether x may be read in packs
  const float* x = nullptr;
  float* norm = nullptr;
  float most = 0;
  float* factor = nullptr;  // may be null

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
  RINGLET_HOST_DEVICE void finish(std::int64_t, double sum) const {
    *norm = static_cast<float>(std::sqrt(sum));
    if (factor != nullptr) *factor = element::clip_factor(*norm, most);
  }
  RINGLET_HOST_DEVICE static double square(float value) {
    return static_cast<double>(value) * static_cast<double>(value);
  }
};

/// Floor: reads 4 N bytes.
template <class Grid>
void l2_norm(Grid&& grid, const ConstView& x, const View& norm, const NormLimit& limit = {}) {
  const std::int64_t parts =
      std::max<std::int64_t>(1, (x.count() + SquareSums::kPart - 1) / SquareSums::kPart);
  auto* partial = grid.template workspace_of<double>(parts);
  grid.run_teams("l2_norm", 1,
                 SquareSums{{Divisor(parts), partial},
                            x.count(),
                            takes_packs<kPack>(x.f32()),
                            x.f32(),
                            norm.f32(),
                            limit.most,
                            limit.factor.absent() ? nullptr : limit.factor.f32()});
}

}  // namespace ringlet::grid
