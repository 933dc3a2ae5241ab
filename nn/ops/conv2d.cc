#include "nn/ops/conv2d.h"

#include "nn/ops/bias.h"
#include "nn/ops/conv2d_gradients.h"
#include "nn/tape.h"

namespace ringlet::nn {

Variable conv2d(const Variable& x, const Variable& weight, const Variable& bias,
                const Conv2dSpec& spec, Activation activation) {
  Tape& tape = x.tape();
  const Variable y =
      tape.make(conv2d_output_shape(spec, x.shape(), weight.shape()), x.layout(), x.dtype());
  conv2d_forward(tape.stream(), spec, x.value(), tape.factor(weight, x.dtype()),
                 bias.absent() ? ConstView() : bias.value(), activation, y.value());
  tape.record("conv2d", {x, weight, bias}, y, RecordedConv2d{spec, activation},
              [=](Backward& backward) {
                bias_backward(backward, y, bias, activation);
                conv2d_gradients(backward, spec, x, weight, backward.gradient(y));
              });
  return y;
}

}  // namespace ringlet::nn
