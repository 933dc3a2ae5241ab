#include "kernels/softmax_cross_entropy.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

/// The logits, or their gradient, and the probabilities.
void require_classes(const char* operation, const ConstView& logits, const ConstView& probabilities,
                     const ConstView& labels, float smoothing, const ClassWeights& weights) {
  require_activations(operation, logits);
  require_f32(operation, probabilities);
  require_rank(operation, logits, 2);
  require_same_shape(operation, logits, probabilities);
  require_same_layout(operation, logits, probabilities);
  require(logits.shape()[1] > 0, operation, "there should be at least one class");
  require_labels(operation, labels, logits);
  if (!weights.of_class.absent()) {
    require_dense(operation, weights.of_class, Shape{logits.shape()[1]});
  }
  require(0 <= smoothing && smoothing < 1, operation, "smoothing should be in [0, 1)");
}

}  // namespace

void softmax_cross_entropy_forward(Stream& stream, ConstView logits, ConstView labels,
                                   View probabilities, View loss, float smoothing, View sum,
                                   const ClassWeights& weights) {
  constexpr const char* kName = "softmax_cross_entropy_forward";
  require_classes(kName, logits, probabilities, labels, smoothing, weights);
  require_dense(kName, loss, Shape{1});
  if (!sum.absent()) require_dense(kName, sum, Shape{1});
  const Work work{kName, 5.0 * static_cast<double>(logits.count()),
                  total_bytes(logits, labels, probabilities, loss)};
  dispatch_in_f32(stream, work, impl::any::softmax_cross_entropy_forward, logits, labels,
                  probabilities, loss, smoothing, sum, weights);
}

void softmax_cross_entropy_backward(Stream& stream, ConstView probabilities, ConstView labels,
                                    ConstView dloss, float beta, View dlogits, float smoothing,
                                    const ClassWeights& weights) {
  constexpr const char* kName = "softmax_cross_entropy_backward";
  require_classes(kName, dlogits, probabilities, labels, smoothing, weights);
  require_dense(kName, dloss, Shape{1});
  const Work work{kName, 2.0 * static_cast<double>(dlogits.count()),
                  total_bytes(probabilities, labels, dloss, dlogits)};
  dispatch_in_f32(stream, work, impl::any::softmax_cross_entropy_backward, probabilities, labels,
                  dloss, beta, dlogits, smoothing, weights);
}

}  // namespace ringlet
