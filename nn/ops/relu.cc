#include "nn/ops/relu.h"

#include "kernels/relu.h"
#include "nn/tape.h"

namespace ringlet::nn {

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
