#include "nn/cast.h"

#include "kernels/elementwise.h"
#include "nn/tape.h"

namespace ringlet::nn {

Variable cast(const Variable& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tape& tape = x.tape();
  const Variable y = tape.make(x.shape(), x.layout(), dtype);
  ringlet::cast(tape.stream(), x.value(), y.value());
  // For a gradient that is added to another: the cast itself only overwrites.
  const View mine = tape.wants_gradient(x) ? tape.keep(x.shape(), x.layout(), x.dtype()) : View();
  tape.record("cast", {x}, y, [=](Backward& backward) {
    const auto [dx, beta] = backward.target(x);
    const bool adds = beta != 0;
    ringlet::cast(backward.stream(), backward.gradient_to_read(y), adds ? mine : dx);
    if (adds) ringlet::scale(backward.stream(), 1, mine, beta, dx);
  });
  return y;
}

}  // namespace ringlet::nn
