#include "nn/ops/prelu.h"

#include "kernels/prelu.h"
#include "nn/tape.h"

namespace ringlet::nn {

Variable prelu(const Variable& x, const Variable& slope) {
  Tape& tape = x.tape();
  const Variable y = tape.make(x.shape(), x.layout(), x.dtype());
  prelu_forward(tape.stream(), x.value(), slope.value(), y.value());
  tape.record("prelu", {x, slope}, y, [=](Backward& backward) {
    Backward::Target of_data{}, of_slope{};
    if (backward.wants(x)) of_data = backward.target(x);
    if (backward.wants(slope)) of_slope = backward.target(slope);
    prelu_backward(backward.stream(), x.value(), slope.value(), backward.gradient(y), of_data.beta,
                   of_data.view, of_slope.beta, of_slope.view);
  });
  return y;
}

}  // namespace ringlet::nn
