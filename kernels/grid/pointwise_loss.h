// The kernels of kernels/pointwise_loss.h, for nchw and nhwc: element by element, and a sum.
#pragma once

#include <algorithm>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/pointwise_losses.h"
#include "kernels/reduction.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// The sum of the numbers' losses, times `factor`, which is added to `all` too.
template <class T, class Loss>
struct LossSum : TeamSum<LossSum<T, Loss>, double> {
  static constexpr int kThreads = TeamSum<LossSum, double>::kThreads;
  static constexpr std::int64_t kPart = std::int64_t{16} * kThreads;  // numbers of a block

  std::int64_t numbers = 0;
  double factor = 1;
  const T* predictions = nullptr;
  const float* targets = nullptr;
  float* loss = nullptr;
  float* all = nullptr;  // may be null

  RINGLET_HOST_DEVICE double share(const ThreadIndex& index) const {
    double sum = 0;
    const std::int64_t begin = index.block * kPart;
    for (std::int64_t i = begin + index.thread; i < begin + kPart && i < numbers; i += kThreads) {
      sum += static_cast<double>(Loss::loss(load(predictions[i]), targets[i]));
    }
    return sum;
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t, double sum) const {
    *loss = static_cast<float>(factor * sum);
    if (all != nullptr) *all += *loss;
  }
};

/// Floor: reads 8 N bytes.
template <class Grid>
void pointwise_loss_forward(Grid&& grid, PointwiseLoss kind, const ConstView& predictions,
                            const ConstView& targets, const View& loss, const View& sum = {}) {
  reduction::visit_activations(predictions.dtype(), [&]<class T>(T) {
    element::visit_loss(kind, [&]<class Loss>(Loss) {
      using Total = LossSum<T, Loss>;
      const std::int64_t numbers = predictions.count();
      const std::int64_t blocks =
          std::max<std::int64_t>(1, (numbers + Total::kPart - 1) / Total::kPart);
      auto* partial = grid.template workspace_of<double>(blocks);
      grid.run_teams("pointwise_loss_forward", 1,
                     Total{{Divisor(blocks), partial},
                           numbers,
                           1 / static_cast<double>(predictions.shape().count_per_sample()),
                           predictions.as<T>(),
                           targets.f32(),
                           loss.f32(),
                           sum.absent() ? nullptr : sum.f32()});
    });
  });
}

template <class T, class Loss>
struct LossSlope {
  float numbers;  // of a sample
  float beta = 0;
  const T* predictions = nullptr;
  const float* targets = nullptr;
  const float* dloss = nullptr;
  T* dpredictions = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const float slope = *dloss / numbers * Loss::slope(load(predictions[i]), targets[i]);
    const float old = beta == 0 ? 0.0F : load(dpredictions[i]);
    store(dpredictions[i], element::blend(beta, old, slope));
  }
};

/// Floor: reads 8 N bytes, 12 N with a beta, writes 4 N.
template <class Grid>
void pointwise_loss_backward(Grid&& grid, PointwiseLoss kind, const ConstView& predictions,
                             const ConstView& targets, const ConstView& dloss, float beta,
                             const View& dpredictions) {
  reduction::visit_activations(dpredictions.dtype(), [&]<class T>(T) {
    element::visit_loss(kind, [&]<class Loss>(Loss) {
      grid.for_each("pointwise_loss_backward", predictions.count(),
                    LossSlope<T, Loss>{static_cast<float>(predictions.shape().count_per_sample()),
                                       beta, predictions.as<T>(), targets.f32(), dloss.f32(),
                                       dpredictions.as<T>()});
    });
  });
}

}  // namespace ringlet::grid
