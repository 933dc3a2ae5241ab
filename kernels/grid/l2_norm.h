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
  double* sum = nullptr;    // instead of the norm; may be null
  double weight = 1;        // of the sum

  /// The thread's packs, whose elements are added in the same order however they are read.
  RINGLET_HOST_DEVICE double share(const ThreadIndex& index) const {
    return share_of_part(x, elements, packed, index.block, index.thread);
  }
  /// Of part `part`.
  RINGLET_HOST_DEVICE static double share_of_part(const float* x, std::int64_t elements,
                                                  bool packed, std::int64_t part, int thread) {
    const std::int64_t end = (part + 1) * kPart < elements ? (part + 1) * kPart : elements;
    double sum = 0;
    for (std::int64_t i = part * kPart + kPack * thread; i < end; i += kPack * kThreads) {
      if (packed && i + kPack <= end) {
        const Pack<float, kPack> values = load_pack<kPack>(x, i / kPack);
        for (int k = 0; k < kPack; ++k) sum += square(values[k]);
      } else {
        for (std::int64_t k = i; k < end && k < i + kPack; ++k) sum += square(x[k]);
      }
    }
    return sum;
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t, double all) const {
    if (sum != nullptr) {
      *sum = weight * all;
      return;
    }
    *norm = static_cast<float>(std::sqrt(all));
    if (factor != nullptr) *factor = element::clip_factor(*norm, most);
  }
  RINGLET_HOST_DEVICE static double square(float value) {
    return static_cast<double>(value) * static_cast<double>(value);
  }
};

template <class Grid>
void sum_squares(Grid& grid, const char* name, SquareSums sums, const ConstView& x) {
  const std::int64_t parts =
      std::max<std::int64_t>(1, (x.count() + SquareSums::kPart - 1) / SquareSums::kPart);
  sums.team_size = Divisor(parts);
  sums.partial = grid.template workspace_of<double>(parts);
  sums.elements = x.count();
  sums.packed = takes_packs<kPack>(x.f32());
  sums.x = x.f32();
  grid.run_teams(name, 1, sums);
}

/// Floor: reads 4 N bytes.
template <class Grid>
void l2_norm(Grid&& grid, const ConstView& x, const View& norm, const NormLimit& limit = {}) {
  SquareSums sums{{Divisor(1)}};
  sums.norm = norm.f32();
  sums.most = limit.most;
  sums.factor = limit.factor.absent() ? nullptr : limit.factor.f32();
  sum_squares(grid, "l2_norm", sums, x);
}

/// Floor: reads 4 N bytes.
template <class Grid>
void square_sum(Grid&& grid, const ConstView& x, const View& sum, double weight = 1) {
  SquareSums sums{{Divisor(1)}};
  sums.weight = weight;
  sums.sum = static_cast<double*>(sum.data());
  sum_squares(grid, "square_sum", sums, x);
}

/// The same of several ranges, a team each. All teams have as many blocks as the longest range has
/// parts; those beyond a range bring 0, which changes no sum.
struct SquareSumsOfRanges : TeamSum<SquareSumsOfRanges, double> {
  const SquareRange* ranges = nullptr;
  const float* x = nullptr;
  bool packed = false;  // whether x may be read in packs
  double* sums = nullptr;

  RINGLET_HOST_DEVICE double share(const ThreadIndex& index) const {
    const std::int64_t team = team_size.quotient(index.block);
    const SquareRange range = ranges[team];
    return SquareSums::share_of_part(x + range.begin, range.end - range.begin,
                                     packed && range.begin % kPack == 0,
                                     index.block - team * team_size.divisor(), index.thread);
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t team, double all) const {
    sums[ranges[team].sum] = all;
  }
};

/// Floor: reads 4 N bytes of ranges with N elements together.
template <class Grid>
void square_sums(Grid&& grid, const ConstView& x, const ConstView& ranges, std::int64_t longest,
                 const View& all) {
  const auto teams = ranges.count() / static_cast<std::int64_t>(sizeof(SquareRange));
  const std::int64_t parts =
      std::max<std::int64_t>(1, (longest + SquareSums::kPart - 1) / SquareSums::kPart);
  SquareSumsOfRanges sums{{Divisor(parts)}};
  sums.partial = grid.template workspace_of<double>(teams * parts);
  sums.ranges = static_cast<const SquareRange*>(ranges.data());
  sums.x = x.f32();
  sums.packed = takes_packs<kPack>(x.f32());
  sums.sums = static_cast<double*>(all.data());
  grid.run_teams("square_sums", teams, sums);
}

struct NormOfSums {
  std::int64_t count = 0;
  const double* sums = nullptr;
  float* norm = nullptr;
  float most = 0;
  float* factor = nullptr;  // may be null

  RINGLET_HOST_DEVICE void operator()(std::int64_t) const {
    double all = 0;
    for (std::int64_t i = 0; i < count; ++i) all += sums[i];
    *norm = static_cast<float>(std::sqrt(all));
    if (factor != nullptr) *factor = element::clip_factor(*norm, most);
  }
};

template <class Grid>
void norm_of_sums(Grid&& grid, const ConstView& sums, const View& norm,
                  const NormLimit& limit = {}) {
  grid.for_each(
      "norm_of_sums", 1,
      NormOfSums{sums.count() / kDoubleBytes, static_cast<const double*>(sums.data()), norm.f32(),
                 limit.most, limit.factor.absent() ? nullptr : limit.factor.f32()});
}

}  // namespace ringlet::grid
