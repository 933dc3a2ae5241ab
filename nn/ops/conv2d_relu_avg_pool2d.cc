#include "nn/ops/conv2d_relu_avg_pool2d.h"

#include "kernels/bias.h"
#include "kernels/conv2d_relu_avg_pool2d.h"
#include "nn/ops/conv2d_gradients.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

ConstView value_of(const Variable& bias) { return bias.absent() ? ConstView() : bias.value(); }

Variable by_pixels(const Variable& x, const Variable& weight, const Variable& bias,
                   const Conv2dSpec& spec, bool as_rows) {
  Tape& tape = x.tape();
  const Shape full = conv2d_output_shape(spec, x.shape(), weight.shape());
  const Shape pooled = pool2d_output_shape({}, full);
  const Variable y =
      as_rows ? tape.make({pooled[0], pooled.count_per_sample()}, Layout::nchw, x.dtype())
              : tape.make(pooled, x.layout(), x.dtype());
  const View a = tape.keep(full, x.layout(), x.dtype());
  conv2d_forward(tape.stream(), spec, x.value(), tape.factor(weight, x.dtype()), value_of(bias),
                 Activation::relu, a);
  avg_pool2d_forward(tape.stream(), {}, a, y.value().reshaped(pooled));
  tape.record("conv2d_relu_avg_pool2d", {x, weight, bias}, y, spec, [=](Backward& backward) {
    const auto db = backward.wants(bias) ? backward.target(bias) : Backward::Target{};
    bias_relu_avg_pool2d_backward(backward.stream(), backward.gradient(y).reshaped(pooled), a,
                                  db.beta, db.view);
    conv2d_gradients(backward, spec, x, weight, a);
  });
  return y;
}

}  // namespace

bool fuses_conv2d_relu_avg_pool2d(const Variable& x, const Conv2dSpec& spec,
                                  const Pool2dSpec& pool) {
  const bool halves = pool.kernel == Extent2{2, 2} && pool.stride == Extent2{2, 2} &&
                      pool.padding == Extent2{0, 0} && !pool.ceil_mode;
  return halves &&
         (x.layout() != Layout::lanes ||
          conv2d_relu_avg_pool2d_supported(x.tape().device().id().kind, x.layout(), spec));
}

Variable conv2d_relu_avg_pool2d(const Variable& x, const Variable& weight, const Variable& bias,
                                const Conv2dSpec& spec) {
  if (x.layout() != Layout::lanes) return by_pixels(x, weight, bias, spec, false);
  Tape& tape = x.tape();
  const Variable y = tape.make(conv2d_relu_avg_pool2d_output_shape(spec, x.shape(), weight.shape()),
                               x.layout(), x.dtype());
  const View mask =
      tape.keep(conv2d_relu_avg_pool2d_mask_shape(y.shape()), Layout::nchw, DType::u8);
  conv2d_relu_avg_pool2d_forward(tape.stream(), spec, x.value(), tape.factor(weight, x.dtype()),
                                 value_of(bias), y.value(), mask);
  tape.record("conv2d_relu_avg_pool2d", {x, weight, bias}, y, spec, [=](Backward& backward) {
    const View dy = backward.gradient(y);
    if (backward.wants(weight)) {
      const auto dw = backward.target(weight);
      const auto db = backward.wants(bias) ? backward.target(bias) : Backward::Target{};
      conv2d_relu_avg_pool2d_backward_filter(backward.stream(), spec, x.value(), dy, mask, dw.beta,
                                             dw.view, db.beta, db.view);
    }
    if (backward.wants(x)) {
      const auto [dx, beta] = backward.target(x);
      conv2d_relu_avg_pool2d_backward_data(backward.stream(), spec,
                                           x.tape().factor(weight, x.dtype()), dy, mask, beta, dx);
    }
  });
  return y;
}

Variable flat_conv2d_relu_avg_pool2d(const Variable& x, const Variable& weight,
                                     const Variable& bias, const Conv2dSpec& spec) {
  require(x.layout() == Layout::nhwc, "flat_conv2d_relu_avg_pool2d", "x should be in nhwc");
  return by_pixels(x, weight, bias, spec, true);
}

}  // namespace ringlet::nn
