#include "kernels/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/cpu/sample_rows.h"
#include "kernels/elements.h"

namespace ringlet::impl {

namespace {

void check_labels(const char* operation, const std::int32_t* labels, const SampleRows& rows) {
  for (std::int64_t n = 0; n < rows.samples; ++n) {
    if (0 <= labels[n] && labels[n] < rows.numbers) continue;
    throw ContractError(std::string(operation) + ": sample " + std::to_string(n) +
                        " has the label " + std::to_string(labels[n]) + ", outside of [0, " +
                        std::to_string(rows.numbers) + ")");
  }
}

/// Writes softmax(logits) and returns the loss of one sample. The largest logit is subtracted, so
/// that no exponential overflows and the sum is at least 1.
double softmax_row(const float* logits, std::int64_t classes, std::int64_t stride,
                   std::int64_t label, float smoothing, const float* weights,
                   float* probabilities) {
  float largest = logits[0];
  for (std::int64_t k = 1; k < classes; ++k) largest = std::max(largest, logits[k * stride]);
  float sum = 0;
  for (std::int64_t k = 0; k < classes; ++k) {
    const float e = std::exp(logits[k * stride] - largest);
    probabilities[k * stride] = e;
    sum += e;
  }
  const float factor = 1.0F / sum;
  for (std::int64_t k = 0; k < classes; ++k) probabilities[k * stride] *= factor;
  const auto below_largest = [&](std::int64_t k) {
    return static_cast<double>(logits[k * stride]) - static_cast<double>(largest);
  };
  const double log_sum = std::log(static_cast<double>(sum));
  if (weights != nullptr) {
    const element::WeightedTargets targets{smoothing, 1, static_cast<float>(classes)};
    double loss = 0;
    for (std::int64_t k = 0; k < classes; ++k) {
      const auto wanted = static_cast<double>(targets.of(k == label, weights[k]));
      loss += wanted * (log_sum - below_largest(k));
    }
    return loss;
  }
  if (smoothing == 0) return log_sum - below_largest(label);
  double of_all = 0;
  for (std::int64_t k = 0; k < classes; ++k) of_all += below_largest(k);
  const auto share = static_cast<double>(smoothing);
  return log_sum - (1 - share) * below_largest(label) -
         share / static_cast<double>(classes) * of_all;
}

}  // namespace

void softmax_cross_entropy_forward(CpuStream& stream, const ConstView& logits_view,
                                   const ConstView& labels_view, const View& probabilities_view,
                                   const View& loss, float smoothing, const View& sum,
                                   const ClassWeights& weights) {
  constexpr const char* kName = "softmax_cross_entropy_forward";
  const SampleRows rows = rows_of(logits_view);
  const auto* labels = labels_view.as<std::int32_t>();
  check_labels(kName, labels, rows);
  const float* logits = logits_view.f32();
  float* probabilities = probabilities_view.f32();
  const float* of_class = weights.of_class.absent() ? nullptr : weights.of_class.f32();
  auto* losses = stream.workspace_of<double>(rows.samples);
  for_each_item(stream, rows.samples, [=](std::int64_t n) {
    losses[n] = softmax_row(logits + rows.offset(n), rows.numbers, rows.stride(), labels[n],
                            smoothing, of_class, probabilities + rows.offset(n));
  });
  clear_padding(rows, probabilities);
  double total = 0;
  for (std::int64_t n = 0; n < rows.samples; ++n) total += losses[n];
  *loss.f32() = static_cast<float>(total);
  if (!sum.absent()) *sum.f32() += *loss.f32();
}

void softmax_cross_entropy_backward(CpuStream& stream, const ConstView& probabilities_view,
                                    const ConstView& labels_view, const ConstView& dloss_view,
                                    float beta, const View& dlogits_view, float smoothing,
                                    const ClassWeights& weights) {
  const SampleRows rows = rows_of(probabilities_view);
  const auto* labels = labels_view.as<std::int32_t>();
  const float* probabilities = probabilities_view.f32();
  const float dloss = *dloss_view.f32();
  float* dlogits = dlogits_view.f32();
  const float* w = weights.of_class.absent() ? nullptr : weights.of_class.f32();
  const element::WeightedTargets weighted{smoothing, weights.mean,
                                          static_cast<float>(rows.numbers)};
  const element::SoftmaxTargets targets = element::softmax_targets(smoothing, rows.numbers);
  for_each_item(stream, rows.samples, [=](std::int64_t n) {
    const float* p = probabilities + rows.offset(n);
    float* dz = dlogits + rows.offset(n);
    for (std::int64_t k = 0; k < rows.numbers; ++k) {
      const std::int64_t i = k * rows.stride();
      const float gradient =
          w == nullptr ? element::softmax_gradient(p[i], k == labels[n], targets, dloss)
                       : weighted.gradient(p[i], k == labels[n], w[labels[n]], w[k], dloss);
      dz[i] = element::blend(beta, dz[i], gradient);
    }
  });
  clear_padding(rows, dlogits);
}

}  // namespace ringlet::impl
