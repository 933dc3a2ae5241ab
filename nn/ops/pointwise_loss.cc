#include "nn/ops/pointwise_loss.h"

#include "kernels/normalize.h"
#include "kernels/pointwise_loss.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// The targets as the predictions lie.
ConstView aligned(const Variable& targets, const Variable& predictions) {
  const ConstView wanted = targets.shape() == predictions.shape()
                               ? targets.value()
                               : targets.value().reshaped(predictions.shape());
  if (wanted.layout() == predictions.layout()) return wanted;
  Tape& tape = predictions.tape();
  const View copy = tape.keep(predictions.shape(), predictions.layout());
  relayout(tape.stream(), wanted, copy);
  return copy;
}

Variable pointwise_loss(const char* name, PointwiseLoss kind, const Variable& predictions,
                        const Variable& targets, const View& sum) {
  Tape& tape = predictions.tape();
  const Variable loss = tape.make({1}, Layout::nchw);
  const ConstView wanted = aligned(targets, predictions);
  pointwise_loss_forward(tape.stream(), kind, predictions.value(), wanted, loss.value(), sum);
  tape.record(name, {predictions}, loss, [=](Backward& backward) {
    const auto [dp, beta] = backward.target(predictions);
    pointwise_loss_backward(backward.stream(), kind, predictions.value(), wanted,
                            backward.gradient_to_read(loss), beta, dp);
  });
  return loss;
}

}  // namespace

Variable mean_squared_error(const Variable& predictions, const Variable& targets, const View& sum) {
  return pointwise_loss("mean_squared_error", PointwiseLoss::squared_error, predictions, targets,
                        sum);
}

Variable binary_cross_entropy(const Variable& logits, const Variable& targets, const View& sum) {
  return pointwise_loss("binary_cross_entropy", PointwiseLoss::binary_cross_entropy, logits,
                        targets, sum);
}

}  // namespace ringlet::nn
