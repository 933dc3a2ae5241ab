#include "bench/kernels/kernel_calls.h"
#include "kernels/conv2d.h"

namespace ringlet::bench {

namespace {

/// One call of each pass. `extent`: of the images, `kernel` x `kernel` weights with padding to fit.
void add_convolution(KernelCallsBuilder& b, std::int64_t channels, std::int64_t extent,
                     std::int64_t outputs, int kernel, int stride) {
  const int padding = kernel / 2;
  const Conv2dSpec spec{.stride = {stride, stride}, .padding = {padding, padding}};
  const ValueAndGradient x = b.activation_pair({1, channels, extent, extent});
  const ValueAndGradient w = b.weight_pair({outputs, channels, kernel, kernel});
  const Shape shape = conv2d_output_shape(spec, x.value.shape(), w.value.shape());
  const ValueAndGradient y = b.activation_pair(shape);
  const double flops =
      2.0 * static_cast<double>(shape.count() * w.value.shape().count_per_sample());
  const std::string name = std::to_string(channels) + "x" + std::to_string(extent) + "-" +
                           std::to_string(outputs) + "-" + std::to_string(kernel) + "s" +
                           std::to_string(stride);
  Stream& s = b.stream();
  b.add((name + " forward").c_str(), flops, [&s, spec, x, w, y] {
    conv2d_forward(s, spec, x.value, w.value, {}, Activation::none, y.value);
  });
  b.add((name + " backward filter").c_str(), flops, [&s, spec, x, w, y] {
    conv2d_backward_filter(s, spec, x.value, y.gradient, 0, w.gradient);
  });
  if (channels == 3) return;  // images need no gradient
  b.add((name + " backward data").c_str(), flops,
        [&s, spec, x, w, y] { conv2d_backward_data(s, spec, w.value, y.gradient, 0, x.gradient); });
}

}  // namespace

KernelCalls make_resnet_convolutions(Device& device, std::int64_t batch, Layout layout,
                                     bool of_224) {
  KernelCalls calls;
  KernelCallsBuilder b(device, batch, layout, calls);
  std::int64_t extent = of_224 ? 56 : 32;
  add_convolution(b, 3, of_224 ? 224 : 32, 64, of_224 ? 7 : 3, of_224 ? 2 : 1);
  add_convolution(b, 64, extent, 64, 3, 1);
  for (std::int64_t channels = 64; channels < 512; channels *= 2, extent /= 2) {
    add_convolution(b, channels, extent, 2 * channels, 1, 2);
    add_convolution(b, channels, extent, 2 * channels, 3, 2);
    add_convolution(b, 2 * channels, extent / 2, 2 * channels, 3, 1);
  }
  return calls;
}

}  // namespace ringlet::bench
