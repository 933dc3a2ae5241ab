#include "bench/kernels/kernel_calls.h"
#include "kernels/bias.h"
#include "kernels/conv2d.h"
#include "kernels/conv2d_relu_avg_pool2d.h"
#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/pool2d.h"

namespace ringlet::bench {

namespace {

using Builder = KernelCallsBuilder;
using Pair = ValueAndGradient;

Pair activation(Builder& b, const Shape& shape) { return b.activation_pair(shape); }
Pair weight(Builder& b, const Shape& shape) { return b.weight_pair(shape); }

/// Convolution, ReLU and pooling: tensors, and the calls of both ways.
struct ConvBlock {
  Pair x, w, b, a, y;  // a: the rectified result of the convolution
  View mask;
  std::string name;
  double flops = 0;
};

ConvBlock conv_block(Builder& b, const char* name, const Pair& x, const Shape& w, const Shape& y) {
  ConvBlock block;
  block.name = name;
  block.x = x;
  block.w = weight(b, w);
  block.b = weight(b, {w[0]});
  const Shape full = conv2d_output_shape({}, x.value.shape(), w);
  block.a = activation(b, full);
  block.y = activation(b, y);
  block.mask = b.mask(conv2d_relu_avg_pool2d_mask_shape(block.y.value.shape()));
  block.flops = 2.0 * static_cast<double>(full.count() * w.count_per_sample());
  return block;
}

void add_fused_forward(Builder& b, const ConvBlock& c) {
  b.add((c.name + " relu pool forward").c_str(), c.flops, [&s = b.stream(), c] {
    conv2d_relu_avg_pool2d_forward(s, {}, c.x.value, c.w.value, c.b.value, c.y.value, c.mask);
  });
}

void add_fused_backward(Builder& b, const ConvBlock& c, bool with_data) {
  b.add((c.name + " relu pool backward filter").c_str(), c.flops, [&s = b.stream(), c] {
    conv2d_relu_avg_pool2d_backward_filter(s, {}, c.x.value, c.y.gradient, c.mask, 0, c.w.gradient,
                                           0, c.b.gradient);
  });
  if (!with_data) return;
  b.add((c.name + " relu pool backward data").c_str(), c.flops, [&s = b.stream(), c] {
    conv2d_relu_avg_pool2d_backward_data(s, {}, c.w.value, c.y.gradient, c.mask, 0, c.x.gradient);
  });
}

void add_forward(Builder& b, const ConvBlock& c) {
  b.add((c.name + " forward").c_str(), c.flops, [&s = b.stream(), c] {
    conv2d_forward(s, {}, c.x.value, c.w.value, c.b.value, Activation::relu, c.a.value);
  });
  b.add((c.name + " pool forward").c_str(), 0,
        [&s = b.stream(), c] { avg_pool2d_forward(s, {}, c.a.value, c.y.value); });
}

void add_backward(Builder& b, const ConvBlock& c, bool with_data) {
  b.add((c.name + " pool backward").c_str(), 0,
        [&s = b.stream(), c] { avg_pool2d_backward(s, {}, c.y.gradient, 0, c.a.gradient); });
  b.add((c.name + " relu backward").c_str(), 0,
        [&s = b.stream(), c] { relu_backward(s, c.a.value, c.a.gradient, 0, c.a.gradient); });
  b.add((c.name + " bias backward").c_str(), 0,
        [&s = b.stream(), c] { bias_backward(s, c.a.gradient, 0, c.b.gradient); });
  b.add((c.name + " backward filter").c_str(), c.flops, [&s = b.stream(), c] {
    conv2d_backward_filter(s, {}, c.x.value, c.a.gradient, 0, c.w.gradient);
  });
  if (!with_data) return;
  b.add((c.name + " backward data").c_str(), c.flops, [&s = b.stream(), c] {
    conv2d_backward_data(s, {}, c.w.value, c.a.gradient, 0, c.x.gradient);
  });
}

struct LinearBlock {
  Pair x, w, b, y;
  std::string name;
  Activation act{};
  double flops = 0;
};

LinearBlock linear_block(Builder& b, const char* name, const Pair& x, std::int64_t outputs,
                         Activation act) {
  const std::int64_t inputs = x.value.shape()[1];
  LinearBlock block;
  block.name = name;
  block.x = x;
  block.w = weight(b, {outputs, inputs});
  block.b = weight(b, {outputs});
  block.y = activation(b, {1, outputs});
  block.act = act;
  block.flops = 2.0 * static_cast<double>(x.value.shape()[0] * inputs * outputs);
  return block;
}

void add_forward(Builder& b, const LinearBlock& l) {
  b.add((l.name + " forward").c_str(), l.flops, [&s = b.stream(), l] {
    linear_forward(s, l.x.value, l.w.value, l.b.value, l.act, l.y.value);
  });
}

void add_backward(Builder& b, const LinearBlock& l) {
  if (l.act == Activation::relu) {
    b.add((l.name + " relu backward").c_str(), 0,
          [&s = b.stream(), l] { relu_backward(s, l.y.value, l.y.gradient, 0, l.y.gradient); });
  }
  b.add((l.name + " bias backward").c_str(), 0,
        [&s = b.stream(), l] { bias_backward(s, l.y.gradient, 0, l.b.gradient); });
  b.add((l.name + " backward weight").c_str(), l.flops, [&s = b.stream(), l] {
    linear_backward_weight(s, l.x.value, l.y.gradient, 0, l.w.gradient);
  });
  b.add((l.name + " backward data").c_str(), l.flops, [&s = b.stream(), l] {
    linear_backward_data(s, l.w.value, l.y.gradient, 0, l.x.gradient);
  });
}

Pair flattened(const Pair& x) {
  const Shape shape{x.value.shape()[0], x.value.shape().count_per_sample()};
  return {x.value.reshaped(shape), x.gradient.reshaped(shape)};
}

}  // namespace

KernelCalls make_lenet_layers(Device& device, std::int64_t batch, Layout layout, bool fused) {
  KernelCalls layers;
  Builder b(device, batch, layout, layers);
  const ConvBlock conv1 =
      conv_block(b, "conv1", activation(b, {1, 1, 28, 28}), {20, 1, 3, 3}, {1, 20, 13, 13});
  const ConvBlock conv2 = conv_block(b, "conv2", conv1.y, {50, 20, 5, 5}, {1, 50, 4, 4});
  const LinearBlock fc1 = linear_block(b, "fc1", flattened(conv2.y), 128, Activation::relu);
  const LinearBlock fc2 = linear_block(b, "fc2", fc1.y, 10, Activation::none);
  const auto forward =
      fused ? add_fused_forward : static_cast<decltype(&add_fused_forward)>(add_forward);
  const auto backward =
      fused ? add_fused_backward : static_cast<decltype(&add_fused_backward)>(add_backward);
  forward(b, conv1);
  forward(b, conv2);
  add_forward(b, fc1);
  add_forward(b, fc2);
  add_backward(b, fc2);
  add_backward(b, fc1);
  backward(b, conv2, true);
  backward(b, conv1, false);
  return layers;
}

}  // namespace ringlet::bench
