#include "nn/ops/softmax_cross_entropy.h"

#include "nn/tape.h"

namespace ringlet::nn {

Variable smoothed_cross_entropy(const Variable& logits, const Variable& labels, float smoothing,
                                const View& sum, const ClassWeights& weights) {
  Tape& tape = logits.tape();
  const Variable loss = tape.make({1}, Layout::nchw);
  const View probabilities = tape.keep(logits.shape(), logits.layout());
  softmax_cross_entropy_forward(tape.stream(), logits.value(), labels.value(), probabilities,
                                loss.value(), smoothing, sum, weights);
  tape.record("softmax_cross_entropy", {logits}, loss, [=](Backward& backward) {
    const auto [dlogits, beta] = backward.target(logits);
    softmax_cross_entropy_backward(backward.stream(), probabilities, labels.value(),
                                   backward.gradient_to_read(loss), beta, dlogits, smoothing,
                                   weights);
  });
  return loss;
}

Variable softmax_cross_entropy(const Variable& logits, const Variable& labels) {
  return smoothed_cross_entropy(logits, labels, 0);
}

}  // namespace ringlet::nn
