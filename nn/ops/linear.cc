#include "nn/ops/linear.h"

#include "kernels/branch.h"
#include "kernels/linear.h"
#include "nn/ops/bias.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// The gradient of y becomes that in front of bias and activation. Whether the bias's own gradient
/// is left to come with the product that gives the weight's.
bool leaves_bias(Backward& backward, const Variable& y, const Variable& weight,
                 const Variable& bias, Activation activation) {
  // Behind a ReLU, the pass that masks the gradient sums it as well.
  const bool leaves =
      activation == Activation::none && backward.wants(bias) && backward.wants(weight);
  if (!leaves) bias_backward(backward, y, bias, activation);
  return leaves;
}

void weight_gradient(Stream& stream, const ConstView& x, const ConstView& dy, float beta,
                     const View& dw, const Backward::Target& db) {
  if (db.view.absent()) return linear_backward_weight(stream, x, dy, beta, dw);
  linear_backward_weight_bias(stream, x, dy, beta, dw, db.beta, db.view);
}

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
    const bool with_bias = leaves_bias(backward, y, weight, bias, activation);
    const View dy = backward.gradient(y);
    const bool both = backward.wants(weight) && backward.wants(x);
    if (backward.wants(weight)) {
      const auto db = with_bias ? backward.target(bias) : Backward::Target{};
      const auto [dw, beta] = backward.target(weight);
      const Branch branch(stream, both ? product_flops(x, weight) : 0);
      weight_gradient(stream, x.value(), dy, beta, dw, db);
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
