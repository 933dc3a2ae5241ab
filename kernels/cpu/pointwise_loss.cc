#include "kernels/pointwise_loss.h"

#include "kernels/cpu/sample_rows.h"
#include "kernels/pointwise_losses.h"

namespace ringlet::impl {

void pointwise_loss_forward(CpuStream& stream, PointwiseLoss kind, const ConstView& predictions,
                            const ConstView& targets, const View& loss, const View& sum) {
  const SampleRows rows = rows_of(predictions);
  const float *p = predictions.f32(), *t = targets.f32();
  auto* losses = stream.workspace_of<double>(rows.samples);
  element::visit_loss(kind, [&]<class Loss>(Loss) {
    for_each_item(stream, rows.samples, [=](std::int64_t n) {
      losses[n] = 0;
      for (std::int64_t k = 0; k < rows.numbers; ++k) {
        const std::int64_t at = rows.offset(n) + k * rows.stride();
        losses[n] += static_cast<double>(Loss::loss(p[at], t[at]));
      }
    });
  });
  double total = 0;
  for (std::int64_t n = 0; n < rows.samples; ++n) total += losses[n];
  *loss.f32() = static_cast<float>(total / static_cast<double>(rows.numbers));
  if (!sum.absent()) *sum.f32() += *loss.f32();
}

void pointwise_loss_backward(CpuStream& stream, PointwiseLoss kind, const ConstView& predictions,
                             const ConstView& targets, const ConstView& dloss, float beta,
                             const View& dpredictions) {
  const SampleRows rows = rows_of(predictions);
  const float factor = *dloss.f32() / static_cast<float>(rows.numbers);
  element::visit_loss(kind, [&]<class Loss>(Loss) {
    const auto slope = [=](float p, float t) { return factor * Loss::slope(p, t); };
    const auto sum = [=](float p, float t, float old) { return beta * old + slope(p, t); };
    if (beta == 0) {
      map(stream, dpredictions, slope, predictions, targets);
    } else {
      map(stream, dpredictions, sum, predictions, targets, dpredictions);
    }
  });
  clear_padding(rows, dpredictions.f32());
}

}  // namespace ringlet::impl
