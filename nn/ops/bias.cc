#include "nn/ops/bias.h"

#include "kernels/bias.h"
#include "kernels/elementwise.h"

namespace ringlet::nn {

void bias_backward(Backward& backward, const Variable& y, const Variable& bias,
                   Activation activation) {
  Stream& stream = backward.stream();
  const View dy = backward.gradient(y);
  const bool rectified = activation == Activation::relu;
  if (!backward.wants(bias)) {
    if (rectified) relu_backward(stream, y.value(), dy, 0, dy);
    return;
  }
  const auto [db, beta] = backward.target(bias);
  if (rectified) {
    bias_relu_backward(stream, y.value(), dy, dy, beta, db);
  } else {
    ringlet::bias_backward(stream, dy, beta, db);
  }
}

}  // namespace ringlet::nn
