#include "nn/ops/pool2d.h"

#include "nn/tape.h"

namespace ringlet::nn {

Variable avg_pool2d(const Variable& x, const Pool2dSpec& spec) {
  Tape& tape = x.tape();
  const Variable y = tape.make(pool2d_output_shape(spec, x.shape()), x.layout(), x.dtype());
  avg_pool2d_forward(tape.stream(), spec, x.value(), y.value());
  tape.record("avg_pool2d", {x}, y, spec, [=](Backward& backward) {
    const auto [dx, beta] = backward.target(x);
    avg_pool2d_backward(backward.stream(), spec, backward.gradient(y), beta, dx);
  });
  return y;
}

Variable max_pool2d(const Variable& x, const Pool2dSpec& spec) {
  Tape& tape = x.tape();
  const Variable y = tape.make(pool2d_output_shape(spec, x.shape()), x.layout(), x.dtype());
  const View winner = tape.keep(y.shape(), x.layout(), DType::i32);
  max_pool2d_forward(tape.stream(), spec, x.value(), y.value(), winner);
  tape.record("max_pool2d", {x}, y, spec, [=](Backward& backward) {
    const auto [dx, beta] = backward.target(x);
    max_pool2d_backward(backward.stream(), spec, backward.gradient(y), winner, beta, dx);
  });
  return y;
}

}  // namespace ringlet::nn
