#include "kernels/softmax_cross_entropy.h"

#include "kernels/contract.h"
#include "kernels/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_classes(const char* operation, const ConstView& a, const ConstView& b,
                     const ConstView& labels, float smoothing) {
  require_f32(operation, a);
  require_rank(operation, a, 2);
  require_same_kind(operation, a, b);
  require(a.shape()[1] > 0, operation, "there should be at least one class");
  require_labels(operation, labels, a);
  require(0 <= smoothing && smoothing < 1, operation, "smoothing should be in [0, 1)");
}

}  // namespace

void softmax_cross_entropy_forward(Stream& stream, ConstView logits, ConstView labels,
                                   View probabilities, View loss, float smoothing) {
  constexpr const char* kName = "softmax_cross_entropy_forward";
  require_classes(kName, logits, probabilities, labels, smoothing);
  require_dense(kName, loss, Shape{1});
  const Work work{kName, 5.0 * static_cast<double>(logits.count()),
                  total_bytes(logits, labels, probabilities, loss)};
  dispatch(stream, work, [&](auto& concrete) {
    impl::softmax_cross_entropy_forward(concrete, logits, labels, probabilities, loss, smoothing);
  });
}

void softmax_cross_entropy_backward(Stream& stream, ConstView probabilities, ConstView labels,
                                    ConstView dloss, float beta, View dlogits, float smoothing) {
  constexpr const char* kName = "softmax_cross_entropy_backward";
  require_classes(kName, probabilities, dlogits, labels, smoothing);
  require_dense(kName, dloss, Shape{1});
  const Work work{kName, 2.0 * static_cast<double>(dlogits.count()),
                  total_bytes(probabilities, labels, dloss, dlogits)};
  dispatch(stream, work, [&](auto& concrete) {
    impl::softmax_cross_entropy_backward(concrete, probabilities, labels, dloss, beta, dlogits,
                                         smoothing);
  });
}

}  // namespace ringlet
