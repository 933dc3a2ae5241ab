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

Variable relu(const Variable& x) {
  Tape& tape = x.tape();
  const Variable y = tape.make(x.shape(), x.layout(), x.dtype());
  relu_forward(tape.stream(), x.value(), y.value());
  tape.record("relu", {x}, y, [=](Backward& backward) {
    const auto [dx, beta] = backward.target(x);
    relu_backward(backward.stream(), y.value(), backward.gradient(y), beta, dx);
  });
  return y;
}

}  // namespace ringlet::nn
