// The kernels of kernels/margin_softmax.h. Where a row is summed up, a block has it; products are
// an element a thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/margin.h"

namespace ringlet::grid {

/// A block a row: its threads bring shares, of which a tree makes one, and finish(row, of all).
template <class Derived, class T>
struct RowSum {
  static constexpr int kThreads = 256;
  static constexpr int kSteps = tree_steps(kThreads);
  static constexpr int kPhases = kSteps + 2;
  struct Shared {
    T sums[kThreads];
  };

  RINGLET_HOST_DEVICE void phase(int k, const ThreadIndex& index, Shared& shared) const {
    if (k == 0) {
      shared.sums[index.thread] = derived().share(index);
    } else if (k <= kSteps) {
      tree_step(shared.sums, kThreads, k - 1, index.thread, Sum{});
    } else {
      derived().finish(index, shared.sums[0]);
    }
  }

 private:
  RINGLET_HOST_DEVICE const Derived& derived() const { return static_cast<const Derived&>(*this); }
};

struct InverseNorm : RowSum<InverseNorm, double> {
  std::int64_t columns = 0;
  const float* x = nullptr;
  float* inverse = nullptr;

  RINGLET_HOST_DEVICE double share(const ThreadIndex& index) const {
    double sum = 0;
    for (std::int64_t i = index.thread; i < columns; i += kThreads) {
      const auto value = static_cast<double>(x[index.block * columns + i]);
      sum += value * value;
    }
    return sum;
  }
  RINGLET_HOST_DEVICE void finish(const ThreadIndex& index, double sum) const {
    if (index.thread == 0) inverse[index.block] = margin::inverse_norm(sum);
  }
};

/// Floor: reads 4 R D bytes.
template <class Grid>
void inverse_norms(Grid&& grid, const ConstView& x, const View& inverse) {
  InverseNorm program;
  program.columns = x.shape()[1];
  program.x = x.f32();
  program.inverse = inverse.f32();
  grid.run_blocks("inverse_norms", x.shape()[0], program);
}

/// The three sums of a cosine.
struct CosineSums {
  double xx, ww, xw;
  RINGLET_HOST_DEVICE CosineSums operator+(const CosineSums& other) const {
    return {xx + other.xx, ww + other.ww, xw + other.xw};
  }
};

struct MarginTargets : RowSum<MarginTargets, CosineSums> {
  MarginSpec spec;
  std::int64_t columns = 0, rows = 0, first = 0;
  const float* x = nullptr;
  const float* w = nullptr;
  const std::int32_t* labels = nullptr;
  const float* epochs = nullptr;  // may be null
  float* targets = nullptr;
  float* cosines = nullptr;  // may be null

  RINGLET_HOST_DEVICE CosineSums share(const ThreadIndex& index) const {
    CosineSums sums{0, 0, 0};
    const std::int64_t row = labels[index.block] - first;
    if (row < 0 || row >= rows) return sums;
    for (std::int64_t i = index.thread; i < columns; i += kThreads) {
      const auto a = static_cast<double>(x[index.block * columns + i]);
      const auto b = static_cast<double>(w[row * columns + i]);
      sums = sums + CosineSums{a * a, b * b, a * b};
    }
    return sums;
  }
  RINGLET_HOST_DEVICE void finish(const ThreadIndex& index, const CosineSums& sums) const {
    if (index.thread != 0) return;
    const std::int64_t row = labels[index.block] - first;
    margin::Target target{-std::numeric_limits<float>::infinity(), 0};
    if (row >= 0 && row < rows) {
      const double c = margin::cosine_of(sums.xx, sums.ww, sums.xw);
      target = margin::target_of(spec, margin::margins_at(spec, epochs), c);
      if (cosines != nullptr) cosines[index.block] = static_cast<float>(c);
    }
    targets[2 * index.block] = target.logit;
    targets[2 * index.block + 1] = target.slope;
  }
};

/// Floor: reads 8 N D bytes.
template <class Grid>
void margin_targets(Grid&& grid, const MarginSpec& spec, const ConstView& x, const ConstView& w,
                    const ConstView& labels, std::int64_t first, const ConstView& epochs,
                    const View& targets, const View& cosines = {}) {
  MarginTargets program;
  program.spec = spec;
  program.columns = x.shape()[1];
  program.rows = w.shape()[0];
  program.first = first;
  program.x = x.f32();
  program.w = w.f32();
  program.labels = labels.as<std::int32_t>();
  program.epochs = epochs.absent() ? nullptr : epochs.f32();
  program.targets = targets.f32();
  program.cosines = cosines.absent() ? nullptr : cosines.f32();
  grid.run_blocks("margin_targets", x.shape()[0], program);
}

/// What both of the following read of a product.
struct MarginLogits {
  margin::Others others;
  std::int64_t classes = 0, first = 0;
  const float* x_inverse = nullptr;
  const float* w_inverse = nullptr;
  const std::int32_t* labels = nullptr;
  const float* targets = nullptr;

  MarginLogits(const MarginSpec& spec, const ConstView& products, const ConstView& of_x,
               const ConstView& of_w, const ConstView& the_labels, std::int64_t the_first,
               const ConstView& the_targets)
      : others(margin::others_of(spec)),
        classes(products.shape()[1]),
        first(the_first),
        x_inverse(of_x.f32()),
        w_inverse(of_w.f32()),
        labels(the_labels.as<std::int32_t>()),
        targets(the_targets.f32()) {}

  RINGLET_HOST_DEVICE float cosine(std::int64_t n, std::int64_t j, float product) const {
    return margin::clamped(product * (x_inverse[n] * w_inverse[j]));
  }
  /// Whether column j is that of a class (kernels/row_sample.h).
  RINGLET_HOST_DEVICE bool is_class(std::int64_t j) const { return !(w_inverse[j] < 0); }
  RINGLET_HOST_DEVICE bool is_target(std::int64_t n, std::int64_t j) const {
    return j == labels[n] - first;
  }
  RINGLET_HOST_DEVICE float logit(std::int64_t n, std::int64_t j, float product) const {
    return is_target(n, j) ? targets[2 * n] : others.logit(cosine(n, j, product));
  }
};

/// A block a row: the largest logit but the target's, then the sum of exponentials below that or
/// the target's.
struct MarginPart {
  static constexpr int kThreads = 256;
  static constexpr int kSteps = tree_steps(kThreads);
  static constexpr int kPhases = 2 * kSteps + 3;
  struct Shared {
    float largest[kThreads];
    double sums[kThreads];
  };

  MarginLogits logits;
  const float* products = nullptr;
  bool joins = false;
  float* part = nullptr;

  RINGLET_HOST_DEVICE void phase(int k, const ThreadIndex& index, Shared& shared) const {
    if (k == 0) {
      shared.largest[index.thread] = lane_maximum(index);
    } else if (k <= kSteps) {
      tree_step(shared.largest, kThreads, k - 1, index.thread, Larger{});
    } else if (k == kSteps + 1) {
      shared.sums[index.thread] = lane_exponentials(index, reference(index, shared));
    } else if (k < kPhases - 1) {
      tree_step(shared.sums, kThreads, k - kSteps - 2, index.thread, Sum{});
    } else if (index.thread == 0) {
      finish(index.block, shared.largest[0], shared.sums[0]);
    }
  }

 private:
  RINGLET_HOST_DEVICE float of_label(std::int64_t n) const {
    const std::int64_t label = logits.labels[n] - logits.first;
    const bool here = 0 <= label && label < logits.classes;
    return here ? logits.targets[2 * n] : -std::numeric_limits<float>::infinity();
  }
  RINGLET_HOST_DEVICE float reference(const ThreadIndex& index, const Shared& shared) const {
    return Larger{}(shared.largest[0], of_label(index.block));
  }
  /// A NaN is never larger, and shows in the sum.
  struct Larger {
    RINGLET_HOST_DEVICE float operator()(float a, float b) const { return a < b ? b : a; }
  };

  RINGLET_HOST_DEVICE float lane_maximum(const ThreadIndex& index) const {
    float largest = -std::numeric_limits<float>::infinity();
    const std::int64_t n = index.block;
    for (std::int64_t j = index.thread; j < logits.classes; j += kThreads) {
      if (!logits.is_class(j) || logits.is_target(n, j)) continue;
      largest = Larger{}(largest, logits.logit(n, j, products[n * logits.classes + j]));
    }
    return largest;
  }
  RINGLET_HOST_DEVICE double lane_exponentials(const ThreadIndex& index, float largest) const {
    double sum = 0;
    const std::int64_t n = index.block;
    for (std::int64_t j = index.thread; j < logits.classes; j += kThreads) {
      if (!logits.is_class(j)) continue;
      const float z = logits.logit(n, j, products[n * logits.classes + j]);
      sum += static_cast<double>(std::exp(z - largest));
    }
    return sum;
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t n, float largest, double sum) const {
    margin::Part found{largest, static_cast<float>(sum), of_label(n)};
    if (joins) found = margin::joined({part[3 * n], part[3 * n + 1], part[3 * n + 2]}, found);
    part[3 * n] = found.largest;
    part[3 * n + 1] = found.sum;
    part[3 * n + 2] = found.of_label;
  }
};

/// Floor: reads 4 N K bytes; here it is twice that, of which the cache has the second.
template <class Grid>
void margin_softmax_part(Grid&& grid, const MarginSpec& spec, const ConstView& products,
                         const ConstView& x_inverse, const ConstView& w_inverse,
                         const ConstView& labels, std::int64_t first, const ConstView& targets,
                         bool joins, const View& part) {
  grid.run_blocks(
      "margin_softmax_part", products.shape()[0],
      MarginPart{MarginLogits(spec, products, x_inverse, w_inverse, labels, first, targets),
                 products.f32(), joins, part.f32()});
}

struct MarginGradient {
  MarginLogits logits;
  Divisor classes;
  const float* merged = nullptr;
  const float* dloss = nullptr;
  float* products = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t n = classes.quotient(i), j = i - n * classes.divisor();
    const float inverse = logits.x_inverse[n] * logits.w_inverse[j];
    const float c = margin::clamped(products[i] * inverse);
    const bool is_target = logits.is_target(n, j);
    const float z = is_target ? logits.targets[2 * n] : logits.others.logit(c);
    const float p = std::exp(z - merged[3 * n]) / merged[3 * n + 1];
    float g = *dloss * logits.others.scale * p;
    if (is_target) {
      g = *dloss * logits.targets[2 * n + 1] * (p - 1);
    } else if (logits.others.filters(c)) {
      g = 0;
    }
    products[i] = logits.is_class(j) ? g * inverse : 0.0F;
  }
};

/// Floor: reads 4 N K bytes, writes 4 N K.
template <class Grid>
void margin_softmax_gradient(Grid&& grid, const MarginSpec& spec, const ConstView& x_inverse,
                             const ConstView& w_inverse, const ConstView& labels,
                             std::int64_t first, const ConstView& targets, const ConstView& merged,
                             const ConstView& dloss, const View& products) {
  grid.for_each(
      "margin_softmax_gradient", products.count(),
      MarginGradient{MarginLogits(spec, products, x_inverse, w_inverse, labels, first, targets),
                     Divisor(std::max<std::int64_t>(1, products.shape()[1])), merged.f32(),
                     dloss.f32(), products.f32()});
}

struct ProjectRow : RowSum<ProjectRow, double> {
  std::int64_t columns = 0;
  const float* x = nullptr;
  const float* inverse = nullptr;
  float* g = nullptr;

  RINGLET_HOST_DEVICE double share(const ThreadIndex& index) const {
    double sum = 0;
    const std::int64_t begin = index.block * columns;
    for (std::int64_t i = index.thread; i < columns; i += kThreads) {
      sum += static_cast<double>(x[begin + i]) * static_cast<double>(g[begin + i]);
    }
    return sum;
  }
  RINGLET_HOST_DEVICE void finish(const ThreadIndex& index, double dot) const {
    const auto a = static_cast<double>(inverse[index.block]);
    const std::int64_t begin = index.block * columns;
    for (std::int64_t i = index.thread; i < columns; i += kThreads) {
      g[begin + i] = margin::projected(x[begin + i], a, dot, g[begin + i]);
    }
  }
};

/// Floor: reads 8 R D bytes, writes 4 R D.
template <class Grid>
void project_rows(Grid&& grid, const ConstView& x, const ConstView& inverse, const View& g) {
  ProjectRow program;
  program.columns = x.shape()[1];
  program.x = x.f32();
  program.inverse = inverse.f32();
  program.g = g.f32();
  grid.run_blocks("project_rows", x.shape()[0], program);
}

/// One thread: a rank's share of a pass has few samples.
struct ShardsRight {
  std::int64_t parts, samples, begin, end;
  const float* all;
  const float* merged;
  const float* x_inverse;
  std::int32_t* right;

  RINGLET_HOST_DEVICE void operator()(std::int64_t) const {
    std::int32_t count = 0, undirected = 0;
    for (std::int64_t n = begin; n < end; ++n) {
      float of_label = -std::numeric_limits<float>::infinity();
      for (std::int64_t q = 0; q < parts; ++q) {
        const float t = all[3 * (q * samples + n) + 2];
        of_label = of_label < t ? t : of_label;
      }
      const bool directed = x_inverse[n] > 0;        // nor is a NaN
      const bool broken = !(merged[3 * n + 1] > 0);  // the sum of exponentials
      if (directed && !broken && of_label >= merged[3 * n]) ++count;
      if (x_inverse[n] == 0) ++undirected;
    }
    right[0] += count;
    right[1] += undirected;
  }
};

template <class Grid>
void softmax_shards_right(Grid&& grid, const ConstView& parts, const ConstView& merged,
                          const ConstView& x_inverse, std::int64_t begin, std::int64_t end,
                          const View& right) {
  grid.for_each("softmax_shards_right", 1,
                ShardsRight{parts.shape()[0], parts.shape()[1], begin, end, parts.f32(),
                            merged.f32(), x_inverse.f32(), right.as<std::int32_t>()});
}

/// Of some samples: angles to the own centres, how many, to the nearest others, and how many.
struct AngleSums {
  double own, owned, others, othered;
  RINGLET_HOST_DEVICE AngleSums operator+(const AngleSums& b) const {
    return {own + b.own, owned + b.owned, others + b.others, othered + b.othered};
  }
};

/// One block.
struct MarginAngles : RowSum<MarginAngles, AngleSums> {
  double scale = 1;
  std::int64_t all = 0, parts = 0, samples = 0, begin = 0, end = 0;
  const float* cosines = nullptr;
  const float* of_parts = nullptr;
  float* sums = nullptr;

  RINGLET_HOST_DEVICE AngleSums share(const ThreadIndex& index) const {
    return share_of(index.thread, kThreads);
  }
  RINGLET_HOST_DEVICE void finish(const ThreadIndex& index, const AngleSums& found) const {
    if (index.thread == 0) add(found);
  }

  /// Of the samples first, first + step, ...
  RINGLET_HOST_DEVICE AngleSums share_of(std::int64_t first, std::int64_t step) const {
    AngleSums found{0, 0, 0, 0};
    for (std::int64_t n = first; n < all; n += step) {
      if (!(cosines[n] <= kMostCosine)) continue;
      found.own += margin::angle_of(margin::clamped(static_cast<double>(cosines[n])));
      found.owned += 1;
    }
    for (std::int64_t n = begin + first; n < end; n += step) {
      float nearest = -std::numeric_limits<float>::infinity();
      for (std::int64_t q = 0; q < parts; ++q) {
        const float m = of_parts[3 * (q * samples + n)];
        nearest = nearest < m ? m : nearest;
      }
      if (nearest < -std::numeric_limits<float>::max()) continue;
      found.others += margin::angle_of(margin::clamped(static_cast<double>(nearest) / scale));
      found.othered += 1;
    }
    return found;
  }
  RINGLET_HOST_DEVICE void add(const AngleSums& found) const {
    sums[0] += static_cast<float>(found.own);
    sums[1] += static_cast<float>(found.owned);
    sums[2] += static_cast<float>(found.others);
    sums[3] += static_cast<float>(found.othered);
  }

 private:
  static constexpr float kMostCosine = 1.5F;  // kNoCosine is above it
};

inline MarginAngles margin_angles_of(const MarginSpec& spec, const ConstView& cosines,
                                     const ConstView& parts, std::int64_t begin, std::int64_t end,
                                     const View& sums) {
  MarginAngles program;
  program.scale = spec.scale;
  program.all = cosines.count();
  program.parts = parts.shape()[0];
  program.samples = parts.shape()[1];
  program.begin = begin;
  program.end = end;
  program.cosines = cosines.f32();
  program.of_parts = parts.f32();
  program.sums = sums.f32();
  return program;
}

template <class Grid>
void margin_angles(Grid&& grid, const MarginSpec& spec, const ConstView& cosines,
                   const ConstView& parts, std::int64_t begin, std::int64_t end, const View& sums) {
  grid.run_blocks("margin_angles", 1, margin_angles_of(spec, cosines, parts, begin, end, sums));
}

}  // namespace ringlet::grid
