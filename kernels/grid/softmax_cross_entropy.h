// The kernels of kernels/softmax_cross_entropy.h, for nchw. A warp has a row; maximum and sum are
// trees over its threads.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

struct Larger {
  /// As on the CPU, a NaN is never larger. It shows in the sum.
  RINGLET_HOST_DEVICE float operator()(float a, float b) const { return a < b ? b : a; }
};

/// probabilities = softmax(logits), and each row's loss.
struct SoftmaxRows {
  static constexpr int kThreads = 256;
  static constexpr int kRowThreads = 32;
  static constexpr int kRowsPerBlock = kThreads / kRowThreads;
  static constexpr int kSteps = tree_steps(kRowThreads);
  static constexpr int kPhases = 2 * kSteps + 3;
  struct Shared {
    float largest[kThreads];
    float sum[kThreads];
  };

  std::int64_t rows = 0;
  std::int64_t classes = 0;
  const float* logits = nullptr;
  const std::int32_t* labels = nullptr;
  float* probabilities = nullptr;
  double* losses = nullptr;

  RINGLET_HOST_DEVICE void phase(int k, const Place& place, Shared& shared) const {
    const int lane = place.thread % kRowThreads;
    const std::int64_t row = place.block * kRowsPerBlock + place.thread / kRowThreads;
    if (row >= rows) return;
    float* largest = shared.largest + (place.thread - lane);
    float* sum = shared.sum + (place.thread - lane);
    if (k == 0) {
      largest[lane] = lane_maximum(logits + row * classes, lane);
    } else if (k <= kSteps) {
      tree_step(largest, kRowThreads, k - 1, lane, Larger{});
    } else if (k == kSteps + 1) {
      sum[lane] = lane_exponentials(row, lane, largest[0]);
    } else if (k <= 2 * kSteps + 1) {
      tree_step(sum, kRowThreads, k - kSteps - 2, lane, Sum{});
    } else {
      finish(row, lane, largest[0], sum[0]);
    }
  }

 private:
  RINGLET_HOST_DEVICE float lane_maximum(const float* row, int lane) const {
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t k = lane; k < classes; k += kRowThreads) {
      largest = Larger{}(largest, row[k]);
    }
    return largest;
  }

  /// Writes exp(logit - largest), at most 1, and returns the lane's share of their sum.
  RINGLET_HOST_DEVICE float lane_exponentials(std::int64_t row, int lane, float largest) const {
    float sum = 0;
    for (std::int64_t k = lane; k < classes; k += kRowThreads) {
      const float e = std::exp(logits[row * classes + k] - largest);
      probabilities[row * classes + k] = e;
      sum += e;
    }
    return sum;
  }

  RINGLET_HOST_DEVICE void finish(std::int64_t row, int lane, float largest, float sum) const {
    const float factor = 1.0F / sum;
    for (std::int64_t k = lane; k < classes; k += kRowThreads) {
      probabilities[row * classes + k] *= factor;
    }
    if (lane == 0) losses[row] = loss(row, static_cast<double>(largest), static_cast<double>(sum));
  }

  /// NaN for a label outside the classes: a kernel cannot throw.
  RINGLET_HOST_DEVICE double loss(std::int64_t row, double largest, double sum) const {
    const std::int32_t label = labels[row];
    if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
    return std::log(sum) - (static_cast<double>(logits[row * classes + label]) - largest);
  }
};

/// total = sum of values, in one block.
struct TotalLoss : BlockSum<TotalLoss, double> {
  std::int64_t count = 0;
  const double* values = nullptr;
  float* total = nullptr;

  RINGLET_HOST_DEVICE double share(const Place& place) const {
    double sum = 0;
    for (std::int64_t i = place.thread; i < count; i += kThreads) sum += values[i];
    return sum;
  }
  RINGLET_HOST_DEVICE void finish(const Place&, double sum) const {
    *total = static_cast<float>(sum);
  }
};

/// Floor: reads 4 N K bytes, writes 4 N K.
template <class Grid>
void softmax_cross_entropy_forward(Grid&& grid, const ConstView& logits, const ConstView& labels,
                                   const View& probabilities, const View& loss) {
  constexpr const char* kName = "softmax_cross_entropy_forward";
  const std::int64_t rows = logits.shape()[0];
  auto* losses = grid.template workspace_of<double>(rows);
  grid.run_blocks(kName, (rows + SoftmaxRows::kRowsPerBlock - 1) / SoftmaxRows::kRowsPerBlock,
                  SoftmaxRows{rows, logits.shape()[1], logits.f32(), labels.as<std::int32_t>(),
                              probabilities.f32(), losses});
  grid.run_blocks(kName, 1, TotalLoss{{}, rows, losses, loss.f32()});
}

struct SoftmaxGradient {
  Divisor classes;
  const float* probabilities = nullptr;
  const std::int32_t* labels = nullptr;
  const float* dloss = nullptr;
  float beta = 0;
  float* dlogits = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = classes.quotient(i), k = i - row * classes.divisor();
    const float gradient = element::softmax_gradient(probabilities[i], k == labels[row], *dloss);
    dlogits[i] = element::blend(beta, dlogits[i], gradient);
  }
};

/// Floor: reads 4 N K bytes, 8 N K with a beta, writes 4 N K.
template <class Grid>
void softmax_cross_entropy_backward(Grid&& grid, const ConstView& probabilities,
                                    const ConstView& labels, const ConstView& dloss, float beta,
                                    const View& dlogits) {
  grid.for_each("softmax_cross_entropy_backward", dlogits.count(),
                SoftmaxGradient{Divisor(dlogits.shape()[1]), probabilities.f32(),
                                labels.as<std::int32_t>(), dloss.f32(), beta, dlogits.f32()});
}

}  // namespace ringlet::grid
