#include "kernels/linear.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

/// x (or dx) [N, I], w (or dw, of type `weights`) [O, I], y (or dy) [N, O]. Returns the cost.
Work require_linear(const char* operation, const ConstView& x, const ConstView& w, DType weights,
                    const ConstView& y) {
  require_activations(operation, x, y);
  require_rank(operation, x, 2);
  require_rank(operation, w, 2);
  const std::int64_t n = x.shape()[0], inputs = x.shape()[1], outputs = w.shape()[0];
  require_weights(operation, w, Shape{outputs, inputs}, weights);
  require_shape(operation, y, Shape{n, outputs});
  require_same_layout(operation, x, y);
  return {operation, 2.0 * static_cast<double>(n) * static_cast<double>(w.count()),
          total_bytes(x, w, y)};
}

}  // namespace

void linear_forward(Stream& stream, ConstView x, ConstView w, ConstView bias, Activation activation,
                    View y) {
  const Work work = require_linear("linear_forward", x, w, x.dtype(), y);
  if (!bias.absent()) require_dense(work.operation, bias, Shape{w.shape()[0]});
  dispatch_in_f32(stream, work, impl::any::linear_forward, x, w, bias, activation, y);
}

void linear_backward_data(Stream& stream, ConstView w, ConstView dy, float beta, View dx) {
  const Work work = require_linear("linear_backward_data", dx, w, dx.dtype(), dy);
  dispatch_in_f32(stream, work, impl::any::linear_backward_data, w, dy, beta, dx);
}

void linear_backward_weight(Stream& stream, ConstView x, ConstView dy, float beta, View dw) {
  const Work work = require_linear("linear_backward_weight", x, dw, DType::f32, dy);
  dispatch_in_f32(stream, work, impl::any::linear_backward_weight, x, dy, beta, dw);
}

void linear_backward_weight_bias(Stream& stream, ConstView x, ConstView dy, float beta_dw, View dw,
                                 float beta_db, View db) {
  Work work = require_linear("linear_backward_weight_bias", x, dw, DType::f32, dy);
  require_dense(work.operation, db, Shape{dw.shape()[0]});
  work.flops += static_cast<double>(dy.count());
  work.bytes += total_bytes(db);
  dispatch_in_f32(stream, work, impl::any::linear_backward_weight_bias, x, dy, beta_dw, dw, beta_db,
                  db);
}

}  // namespace ringlet
