// The kernels of kernels/softmax_cross_entropy.h, for nchw. A warp has a row; maximum and sum are
// trees over its threads. The last block adds up the losses of all.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/softmax_cross_entropy.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

struct Larger {
  /// As on the CPU, a NaN is never larger. It shows in the sum.
  RINGLET_HOST_DEVICE float operator()(float a, float b) const { return a < b ? b : a; }
};

/// probabilities = softmax(logits), and the sum of the rows' losses, which is added to `all` too.
template <class T>
struct SoftmaxRows : TeamSum<SoftmaxRows<T>, double> {
  using Total = TeamSum<SoftmaxRows, double>;
  static constexpr int kThreads = Total::kThreads;
  static constexpr int kRowThreads = 32;
  static constexpr int kRowsPerBlock = kThreads / kRowThreads;
  static constexpr int kRowSteps = tree_steps(kRowThreads);
  static constexpr int kRowPhases = 2 * kRowSteps + 2;
  static constexpr int kPhases = kRowPhases + Total::kPhases;
  struct Shared : Total::Shared {
    float largest[kThreads];
    float sum[kThreads];
    double below[kThreads];  // with smoothing: how far the thread's logits lie below the largest
  };

  std::int64_t rows = 0;
  std::int64_t classes = 0;
  const T* logits = nullptr;
  const std::int32_t* labels = nullptr;
  float* probabilities = nullptr;
  float* loss = nullptr;
  float smoothing = 0;
  float* all = nullptr;      // may be null
  const float* w = nullptr;  // weights of the classes; may be null
  double mean_weight = 1;

  RINGLET_HOST_DEVICE void phase(int k, const ThreadIndex& index, Shared& shared) const {
    if (k == kRowPhases) {
      shared.sums[index.thread] = finish_row(index, shared);
    } else if (k > kRowPhases) {
      this->add_phase(k - kRowPhases, index, shared);
    } else if (row_of(index) < rows) {
      row_phase(k, index, shared);
    }
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t, double sum) const {
    *loss = static_cast<float>(sum);
    if (all != nullptr) *all += static_cast<float>(sum);
  }

 private:
  RINGLET_HOST_DEVICE static std::int64_t row_of(const ThreadIndex& index) {
    return index.block * kRowsPerBlock + index.thread / kRowThreads;
  }

  RINGLET_HOST_DEVICE void row_phase(int k, const ThreadIndex& index, Shared& shared) const {
    const int lane = index.thread % kRowThreads;
    const std::int64_t row = row_of(index);
    float* largest = shared.largest + (index.thread - lane);
    float* sum = shared.sum + (index.thread - lane);
    if (k == 0) {
      largest[lane] = lane_maximum(logits + row * classes, lane);
    } else if (k <= kRowSteps) {
      tree_step(largest, kRowThreads, k - 1, lane, Larger{});
    } else if (k == kRowSteps + 1) {
      sum[lane] = lane_exponentials(row, lane, largest[0]);
      if (smoothing != 0.0F || w != nullptr)
        shared.below[index.thread] = lane_below(row, lane, largest[0]);
    } else {
      tree_step(sum, kRowThreads, k - kRowSteps - 2, lane, Sum{});
    }
  }

  RINGLET_HOST_DEVICE float lane_maximum(const T* row, int lane) const {
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t k = lane; k < classes; k += kRowThreads) {
      largest = Larger{}(largest, load(row[k]));
    }
    return largest;
  }

  /// Writes exp(logit - largest), at most 1, and returns the lane's share of their sum.
  RINGLET_HOST_DEVICE float lane_exponentials(std::int64_t row, int lane, float largest) const {
    float sum = 0;
    for (std::int64_t k = lane; k < classes; k += kRowThreads) {
      const float e = std::exp(load(logits[row * classes + k]) - largest);
      probabilities[row * classes + k] = e;
      sum += e;
    }
    return sum;
  }

  /// Each class's times its weight.
  RINGLET_HOST_DEVICE double lane_below(std::int64_t row, int lane, float largest) const {
    double sum = 0;
    for (std::int64_t k = lane; k < classes; k += kRowThreads) {
      const double below =
          static_cast<double>(load(logits[row * classes + k])) - static_cast<double>(largest);
      sum += w == nullptr ? below : static_cast<double>(w[k]) * below;
    }
    return sum;
  }

  /// The row's loss for its first thread, 0 for the others.
  RINGLET_HOST_DEVICE double finish_row(const ThreadIndex& index, const Shared& shared) const {
    const int lane = index.thread % kRowThreads, first = index.thread - lane;
    const std::int64_t row = row_of(index);
    if (row >= rows) return 0;
    const float largest = shared.largest[first], sum = shared.sum[first], factor = 1.0F / sum;
    for (std::int64_t k = lane; k < classes; k += kRowThreads) {
      probabilities[row * classes + k] *= factor;
    }
    if (lane != 0) return 0;
    return loss_of(row, static_cast<double>(largest), static_cast<double>(sum),
                   shared.below + first);
  }

  /// NaN for a label outside the classes: a kernel cannot throw.
  RINGLET_HOST_DEVICE double loss_of(std::int64_t row, double largest, double sum,
                                     const double* below) const {
    const std::int32_t label = labels[row];
    if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
    const double of_label = static_cast<double>(load(logits[row * classes + label])) - largest;
    if (smoothing == 0.0F && w == nullptr) return std::log(sum) - of_label;
    double of_all = 0;
    RINGLET_ROLLED
    for (int lane = 0; lane < kRowThreads; ++lane) of_all += below[lane];
    const auto share = static_cast<double>(smoothing);
    if (w != nullptr) {
      const double own = (1 - share) * static_cast<double>(w[label]);
      return (own + share * mean_weight) * std::log(sum) - own * of_label -
             share / static_cast<double>(classes) * of_all;
    }
    return std::log(sum) - (1 - share) * of_label - share / static_cast<double>(classes) * of_all;
  }
};

/// Floor: reads 4 N K bytes, writes 4 N K.
template <class Grid>
void softmax_cross_entropy_forward(Grid&& grid, const ConstView& logits, const ConstView& labels,
                                   const View& probabilities, const View& loss, float smoothing = 0,
                                   const View& sum = {}, const ClassWeights& weights = {}) {
  reduction::visit_activations(logits.dtype(), [&]<class T>(T) {
    using Rows = SoftmaxRows<T>;
    const std::int64_t rows = logits.shape()[0];
    const std::int64_t blocks =
        std::max<std::int64_t>(1, (rows + Rows::kRowsPerBlock - 1) / Rows::kRowsPerBlock);
    auto* partial = grid.template workspace_of<double>(blocks);
    grid.run_teams("softmax_cross_entropy_forward", 1,
                   Rows{{Divisor(blocks), partial},
                        rows,
                        logits.shape()[1],
                        logits.as<T>(),
                        labels.as<std::int32_t>(),
                        probabilities.f32(),
                        loss.f32(),
                        smoothing,
                        sum.absent() ? nullptr : sum.f32(),
                        weights.of_class.absent() ? nullptr : weights.of_class.f32(),
                        static_cast<double>(weights.mean)});
  });
}

template <class T>
struct SoftmaxGradient {
  Divisor classes;
  const float* probabilities = nullptr;
  const std::int32_t* labels = nullptr;
  const float* dloss = nullptr;
  float beta = 0;
  T* dlogits = nullptr;
  element::SoftmaxTargets targets;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = classes.quotient(i), k = i - row * classes.divisor();
    const float gradient =
        element::softmax_gradient(probabilities[i], k == labels[row], targets, *dloss);
    const float old = beta == 0 ? 0.0F : load(dlogits[i]);
    store(dlogits[i], element::blend(beta, old, gradient));
  }
};

template <class T>
struct WeightedSoftmaxGradient {
  SoftmaxGradient<T> plain;
  element::WeightedTargets targets;
  const float* w = nullptr;

  /// A label outside the classes has made the loss NaN.
  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = plain.classes.quotient(i), k = i - row * plain.classes.divisor();
    const std::int64_t label = plain.labels[row];
    const float own = 0 <= label && label < plain.classes.divisor() ? w[label] : 0.0F;
    const float gradient =
        targets.gradient(plain.probabilities[i], k == label, own, w[k], *plain.dloss);
    const float old = plain.beta == 0 ? 0.0F : load(plain.dlogits[i]);
    store(plain.dlogits[i], element::blend(plain.beta, old, gradient));
  }
};

/// Floor: reads 4 N K bytes, 8 N K with a beta, writes 4 N K.
template <class Grid>
void softmax_cross_entropy_backward(Grid&& grid, const ConstView& probabilities,
                                    const ConstView& labels, const ConstView& dloss, float beta,
                                    const View& dlogits, float smoothing = 0,
                                    const ClassWeights& weights = {}) {
  constexpr const char* kName = "softmax_cross_entropy_backward";
  const std::int64_t classes = dlogits.shape()[1];
  reduction::visit_activations(dlogits.dtype(), [&]<class T>(T) {
    const SoftmaxGradient<T> plain{Divisor(classes),
                                   probabilities.f32(),
                                   labels.as<std::int32_t>(),
                                   dloss.f32(),
                                   beta,
                                   dlogits.as<T>(),
                                   element::softmax_targets(smoothing, classes)};
    if (weights.of_class.absent()) return grid.for_each(kName, dlogits.count(), plain);
    const element::WeightedTargets targets{smoothing, weights.mean, static_cast<float>(classes)};
    grid.for_each(kName, dlogits.count(),
                  WeightedSoftmaxGradient<T>{plain, targets, weights.of_class.f32()});
  });
}

}  // namespace ringlet::grid
