#include "nn/ops/linear.h"

#include "kernels/branch.h"
#include "kernels/linear.h"
#include "nn/ops/bias.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

double product_flops(const Variable& x, const Variable& weight) {
  return 2.0 * static_cast<double>(x.shape()[0] * weight.shape()[0] * weight.shape()[1]);
}

}  // namespace

Variable linear(const Variable& x, const Variable& weight, const Variable& bias,
                Activation activation) {
  Tape& tape = x.tape();
  const Variable y = tape.make({x.shape()[0], weight.shape()[0]}, x.layout(), x.dtype());
  linear_forward(tape.stream(), x.value(), tape.factor(weight, x.dtype()),
                 bias.absent() ? ConstView() : bias.value(), activation, y.value());
  tape.record("linear", {x, weight, bias}, y, activation, [=](Backward& backward) {
    Stream& stream = backward.stream();
    const View dy = backward.gradient(y);
    bias_backward(backward, y, bias, activation);
    const bool both = backward.wants(weight) && backward.wants(x);
    if (backward.wants(weight)) {
      const auto [dw, beta] = backward.target(weight);
      const Branch branch(stream, both ? product_flops(x, weight) : 0);
      linear_backward_weight(stream, x.value(), dy, beta, dw);
    }
    if (backward.wants(x)) {
      const auto [dx, beta] = backward.target(x);
      linear_backward_data(stream, x.tape().factor(weight, x.dtype()), dy, beta, dx);
    }
    Branch::join(stream);
  });
  return y;
}

}  // namespace ringlet::nn
