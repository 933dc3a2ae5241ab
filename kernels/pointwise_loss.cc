#include "kernels/pointwise_loss.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_targets(const char* operation, const ConstView& predictions,
                     const ConstView& targets) {
  require_activations(operation, predictions);
  require_f32(operation, targets);
  require_same_shape(operation, predictions, targets);
  require_same_layout(operation, predictions, targets);
  require(predictions.shape().rank() >= 1 && predictions.shape().count_per_sample() > 0, operation,
          "a sample should have at least one number");
}

}  // namespace

void pointwise_loss_forward(Stream& stream, PointwiseLoss kind, ConstView predictions,
                            ConstView targets, View loss, View sum) {
  constexpr const char* kName = "pointwise_loss_forward";
  require_targets(kName, predictions, targets);
  require_dense(kName, loss, Shape{1});
  if (!sum.absent()) require_dense(kName, sum, Shape{1});
  const Work work{kName, 3.0 * static_cast<double>(predictions.count()),
                  total_bytes(predictions, targets, loss)};
  dispatch_in_f32(stream, work, impl::any::pointwise_loss_forward, kind, predictions, targets, loss,
                  sum);
}

void pointwise_loss_backward(Stream& stream, PointwiseLoss kind, ConstView predictions,
                             ConstView targets, ConstView dloss, float beta, View dpredictions) {
  constexpr const char* kName = "pointwise_loss_backward";
  require_targets(kName, predictions, targets);
  require_dense(kName, dloss, Shape{1});
  require_same_kind(kName, predictions, dpredictions);
  const Work work{kName, 3.0 * static_cast<double>(predictions.count()),
                  total_bytes(predictions, targets, dloss, dpredictions)};
  dispatch_in_f32(stream, work, impl::any::pointwise_loss_backward, kind, predictions, targets,
                  dloss, beta, dpredictions);
}

}  // namespace ringlet
