#include "nn/ops/softmax_cross_entropy.h"

#include "nn/tape.h"

namespace ringlet::nn {

Variable smoothed_cross_entropy(const Variable& logits, const Variable& targets, float smoothing,
                                const View& sum, const ClassWeights& weights) {
  Tape& tape = logits.tape();
  const Variable loss = tape.make({1}, Layout::nchw);
  const View probabilities = tape.keep(logits.shape(), logits.layout());
  softmax_cross_entropy_forward(tape.stream(), logits.value(), targets.value(), probabilities,
                                loss.value(), smoothing, sum, weights);
  tape.record("softmax_cross_entropy", {logits}, loss, [=](Backward& backward) {
    const auto [dlogits, beta] = backward.target(logits);
    softmax_cross_entropy_backward(backward.stream(), probabilities, targets.value(),
                                   backward.gradient_to_read(loss), beta, dlogits, smoothing,
                                   weights);
  });
  return loss;
}

Variable softmax_cross_entropy(const Variable& logits, const Variable& targets) {
  return smoothed_cross_entropy(logits, targets, 0);
}

}  // namespace ringlet::nn
