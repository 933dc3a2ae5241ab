#include "nn/ops/elementwise.h"

#include "kernels/elementwise.h"
#include "nn/tape.h"

namespace ringlet::nn {

Variable add(const Variable& a, const Variable& b) {
  Tape& tape = a.tape();
  const Variable y = tape.make(a.shape(), a.layout(), a.dtype());
  ringlet::add(tape.stream(), a.value(), b.value(), y.value());
  tape.record("add", {a, b}, y, [=](Backward& backward) {
    for (const Variable& x : {a, b}) {
      if (!backward.wants(x)) continue;
      const auto [dx, beta] = backward.target(x);
      ringlet::scale(backward.stream(), 1, backward.gradient(y), beta, dx);
    }
  });
  return y;
}

Variable scale(const Variable& x, float alpha) {
  Tape& tape = x.tape();
  const Variable y = tape.make(x.shape(), x.layout(), x.dtype());
  ringlet::scale(tape.stream(), alpha, x.value(), 0, y.value());
  tape.record("scale", {x}, y, alpha, [=](Backward& backward) {
    const auto [dx, beta] = backward.target(x);
    ringlet::scale(backward.stream(), alpha, backward.gradient(y), beta, dx);
  });
  return y;
}

namespace {

using Forward = void (*)(Stream& stream, ConstView x, View y);
using Gradient = void (*)(Stream& stream, ConstView y, ConstView dy, float beta, View dx);

/// y = f(x), whose gradient is found from y.
Variable activation(const char* name, const Variable& x, Forward forward, Gradient gradient) {
  Tape& tape = x.tape();
  const Variable y = tape.make(x.shape(), x.layout(), x.dtype());
  forward(tape.stream(), x.value(), y.value());
  tape.record(name, {x}, y, [=](Backward& backward) {
    const auto [dx, beta] = backward.target(x);
    gradient(backward.stream(), y.value(), backward.gradient(y), beta, dx);
  });
  return y;
}

}  // namespace

Variable relu(const Variable& x) { return activation("relu", x, relu_forward, relu_backward); }

Variable sigmoid(const Variable& x) {
  return activation("sigmoid", x, sigmoid_forward, sigmoid_backward);
}

Variable tanh(const Variable& x) { return activation("tanh", x, tanh_forward, tanh_backward); }

}  // namespace ringlet::nn
