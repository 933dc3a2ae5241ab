#include "nn/ops/flatten.h"

#include "kernels/elementwise.h"
#include "kernels/normalize.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// x in nhwc, as rows. The memory of y is that of the same tensor in nchw.
Variable copied(const Variable& x, const Shape& rows) {
  Tape& tape = x.tape();
  const Variable y = tape.make(rows, Layout::nchw, x.dtype());
  ringlet::relayout(tape.stream(), x.value(), y.value().reshaped(x.shape()));
  tape.record("flatten", {x}, y, [=](Backward& backward) {
    Stream& stream = backward.stream();
    const ConstView dy = ConstView(backward.gradient(y)).reshaped(x.shape());
    const auto [dx, beta] = backward.target(x);
    if (beta == 0) return ringlet::relayout(stream, dy, dx);
    // Nobody reads y any more: its memory takes what is to be added.
    const View copy(y.value().address(), dx.shape(), dx.dtype(), dx.layout());
    ringlet::relayout(stream, dy, copy);
    ringlet::scale(stream, 1, copy, beta, dx);
  });
  return y;
}

}  // namespace

Variable flatten(const Variable& x) {
  const Shape rows{x.shape()[0], x.shape().count_per_sample()};
  const bool in_order = x.layout() != Layout::nhwc || is_alike_in_nhwc(x.shape());
  return in_order ? x.reshaped(rows) : copied(x, rows);
}

}  // namespace ringlet::nn
