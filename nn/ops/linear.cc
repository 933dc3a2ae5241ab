#include "nn/ops/linear.h"

#include "kernels/linear.h"
#include "nn/ops/bias.h"
#include "nn/tape.h"

namespace ringlet::nn {

Variable linear(const Variable& x, const Variable& weight, const Variable& bias,
                Activation activation) {
  Tape& tape = x.tape();
  const Variable y = tape.make({x.shape()[0], weight.shape()[0]}, x.layout());
  linear_forward(tape.stream(), x.value(), weight.value(),
                 bias.absent() ? ConstView() : bias.value(), activation, y.value());
  tape.record("linear", {x, weight, bias}, y, activation, [=](Backward& backward) {
    Stream& stream = backward.stream();
    const View dy = backward.gradient(y);
    bias_backward(backward, y, bias, activation);
    if (backward.wants(weight)) {
      const auto [dw, beta] = backward.target(weight);
      linear_backward_weight(stream, x.value(), dy, beta, dw);
    }
    if (backward.wants(x)) {
      const auto [dx, beta] = backward.target(x);
      linear_backward_data(stream, weight.value(), dy, beta, dx);
    }
  });
  return y;
}

}  // namespace ringlet::nn
