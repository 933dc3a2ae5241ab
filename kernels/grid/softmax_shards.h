// The kernels of kernels/softmax_shards.h. A thread has a row, or an element of the gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/softmax_shards.h"

namespace ringlet::grid {

inline constexpr float kBelowAll = -std::numeric_limits<float>::infinity();

struct SoftmaxShard {
  std::int64_t classes = 0;
  std::int64_t first = 0;
  const float* logits = nullptr;
  const std::int32_t* labels = nullptr;
  float* part = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t n) const {
    const float* z = logits + n * classes;
    float largest = kBelowAll;  // a NaN is never larger, and shows in the sum
    for (std::int64_t k = 0; k < classes; ++k) largest = largest < z[k] ? z[k] : largest;
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += static_cast<double>(std::exp(z[k] - largest));
    const std::int64_t label = labels[n] - first;
    part[3 * n] = largest;
    part[3 * n + 1] = static_cast<float>(sum);
    part[3 * n + 2] = 0 <= label && label < classes ? z[label] : kBelowAll;
  }
};

template <class Grid>
void softmax_shard_forward(Grid&& grid, const ConstView& logits, const ConstView& labels,
                           std::int64_t first, const View& part) {
  grid.for_each(
      "softmax_shard_forward", logits.shape()[0],
      SoftmaxShard{logits.shape()[1], first, logits.f32(), labels.as<std::int32_t>(), part.f32()});
}

struct SoftmaxMerge {
  std::int64_t parts = 0;
  std::int64_t samples = 0;
  const float* all = nullptr;
  float* merged = nullptr;

  /// That below which a part's exponentials are.
  RINGLET_HOST_DEVICE static float reference(const float* part) {
    return part[0] < part[2] ? part[2] : part[0];
  }
  RINGLET_HOST_DEVICE void operator()(std::int64_t n) const {
    float largest = kBelowAll, of_label = kBelowAll;
    for (std::int64_t q = 0; q < parts; ++q) {
      const float* part = all + 3 * (q * samples + n);
      largest = largest < reference(part) ? reference(part) : largest;
      of_label = of_label < part[2] ? part[2] : of_label;
    }
    double sum = 0;
    for (std::int64_t q = 0; q < parts; ++q) {
      const float* part = all + 3 * (q * samples + n);
      if (part[1] == 0.0F) continue;  // without classes
      sum +=
          static_cast<double>(part[1]) * static_cast<double>(std::exp(reference(part) - largest));
    }
    merged[3 * n] = largest;
    merged[3 * n + 1] = static_cast<float>(sum);
    merged[3 * n + 2] = static_cast<float>(
        std::log(sum) - (static_cast<double>(of_label) - static_cast<double>(largest)));
  }
};

template <class Grid>
void softmax_shards_merge(Grid&& grid, const ConstView& parts, const View& merged) {
  grid.for_each("softmax_shards_merge", merged.shape()[0],
                SoftmaxMerge{parts.shape()[0], parts.shape()[1], parts.f32(), merged.f32()});
}

/// One thread: a rank's share of a pass has few samples.
struct SumOfLosses {
  std::int64_t samples = 0;
  const float* merged = nullptr;
  float* loss = nullptr;
  float* all = nullptr;  // may be null

  RINGLET_HOST_DEVICE void operator()(std::int64_t) const {
    double sum = 0;
    for (std::int64_t n = 0; n < samples; ++n) sum += static_cast<double>(merged[3 * n + 2]);
    *loss = static_cast<float>(sum);
    if (all != nullptr) *all += *loss;
  }
};

template <class Grid>
void softmax_shards_loss(Grid&& grid, const ConstView& merged, const View& loss,
                         const View& sum = {}) {
  grid.for_each(
      "softmax_shards_loss", 1,
      SumOfLosses{merged.shape()[0], merged.f32(), loss.f32(), sum.absent() ? nullptr : sum.f32()});
}

struct SoftmaxShardGradient {
  Divisor classes;
  std::int64_t first = 0;
  const float* logits = nullptr;
  const std::int32_t* labels = nullptr;
  const float* merged = nullptr;
  const float* dloss = nullptr;
  float beta = 0;
  float* dlogits = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t n = classes.quotient(i), k = i - n * classes.divisor();
    const float probability = std::exp(logits[i] - merged[3 * n]) / merged[3 * n + 1];
    const float gradient = element::softmax_gradient(probability, k == labels[n] - first,
                                                     element::SoftmaxTargets{}, *dloss);
    dlogits[i] = element::blend(beta, beta == 0 ? 0.0F : dlogits[i], gradient);
  }
};

template <class Grid>
void softmax_shard_backward(Grid&& grid, const ConstView& logits, const ConstView& labels,
                            std::int64_t first, const ConstView& merged, const ConstView& dloss,
                            float beta, const View& dlogits) {
  grid.for_each("softmax_shard_backward", dlogits.count(),
                SoftmaxShardGradient{Divisor(std::max<std::int64_t>(1, dlogits.shape()[1])), first,
                                     logits.f32(), labels.as<std::int32_t>(), merged.f32(),
                                     dloss.f32(), beta, dlogits.f32()});
}

}  // namespace ringlet::grid
