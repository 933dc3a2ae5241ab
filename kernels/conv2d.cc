#include "kernels/conv2d.h"

#include <string>

#include "kernels/contract.h"
#include "kernels/cpu/in_f32.h"
#include "kernels/cpu/lanes/bf16/bf16.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_spec(const char* operation, const Conv2dSpec& spec) {
  require(spec.stride.h >= 1 && spec.stride.w >= 1, operation, "the stride should be at least 1");
  require(spec.padding.h >= 0 && spec.padding.w >= 0, operation,
          "the padding should be at least 0");
  require(spec.dilation.h >= 1 && spec.dilation.w >= 1, operation,
          "the dilation should be at least 1");
  require(spec.groups >= 1, operation, "there should be at least one group");
}

std::int64_t output_extent(std::int64_t input, std::int64_t kernel, int stride, int padding,
                           int dilation) {
  const std::int64_t room = input + 2 * std::int64_t{padding} - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

Shape output_shape(const char* operation, const Conv2dSpec& spec, const Shape& x, const Shape& w) {
  require_spec(operation, spec);
  require(x.rank() == 4 && w.rank() == 4, operation,
          "the input should be [N, C, H, W] and the weights [O, C/groups, KH, KW]");
  if (x[1] != w[1] * spec.groups || w[0] % spec.groups != 0) {
    throw ContractError(std::string(operation) + ": the input " + x.to_string() +
                        " and the weights " + w.to_string() + " do not fit in " +
                        std::to_string(spec.groups) + " groups of channels");
  }
  require(w[2] >= 1 && w[3] >= 1, operation, "the window should be at least 1 x 1");
  const std::int64_t height =
      output_extent(x[2], w[2], spec.stride.h, spec.padding.h, spec.dilation.h);
  const std::int64_t width =
      output_extent(x[3], w[3], spec.stride.w, spec.padding.w, spec.dilation.w);
  if (height < 1 || width < 1) {
    throw ContractError(std::string(operation) + ": the window of the weights " + w.to_string() +
                        " does not fit into the input " + x.to_string());
  }
  return {x[0], w[0], height, width};
}

/// x (or dx), w (or dw, of type `weights`) and y (or dy). Returns the cost.
Work require_conv2d(const char* operation, Stream& stream, const Conv2dSpec& spec,
                    const ConstView& x, const ConstView& w, DType weights, const ConstView& y) {
  require_activations(operation, x, y);
  require_shape(operation, y, output_shape(operation, spec, x.shape(), w.shape()));
  if (w.layout() == Layout::nhwc && stream.device().id().kind != DeviceKind::cpu) {
    require_dtype(operation, w, weights);
  } else {
    require_weights(operation, w, w.shape(), weights);
  }
  require_same_layout(operation, x, y);
  return {operation,
          2.0 * static_cast<double>(y.count()) * static_cast<double>(w.shape().count_per_sample()),
          total_bytes(x, w, y)};
}

}  // namespace

namespace {

/// Whether the device multiplies x and w, or x and dy for dw, as they are.
template <class ConcreteStream>
bool narrow_suits(const ConcreteStream&, const Conv2dSpec&, const ConstView&, const ConstView&) {
  return true;
}
bool narrow_suits(const CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
                  const ConstView& w) {
  return w.dtype() == DType::f32 ? lanes::bf16::suits_filter(stream, spec, x, w)
                                 : lanes::bf16::suits(stream, spec, x, w);
}

}  // namespace

bool multiplies_bf16(Bf16Products products, const Shape& w) {
  return products != Bf16Products::none && w.rank() == 4 && lanes::bf16::suits(w);
}

Shape conv2d_output_shape(const Conv2dSpec& spec, const Shape& x, const Shape& w) {
  return output_shape("conv2d_output_shape", spec, x, w);
}

void conv2d_forward(Stream& stream, const Conv2dSpec& spec, ConstView x, ConstView w,
                    ConstView bias, Activation activation, View y) {
  const Work work = require_conv2d("conv2d_forward", stream, spec, x, w, x.dtype(), y);
  if (!bias.absent()) require_dense(work.operation, bias, Shape{w.shape()[0]});
  dispatch(stream, work, [&](auto& concrete) {
    InF32 in_f32(concrete, narrow_suits(concrete, spec, x, w));
    impl::conv2d_forward(concrete, spec, in_f32(x), in_f32(w), bias, activation, in_f32(y));
  });
}

void conv2d_backward_data(Stream& stream, const Conv2dSpec& spec, ConstView w, ConstView dy,
                          float beta, View dx) {
  const Work work = require_conv2d("conv2d_backward_data", stream, spec, dx, w, dx.dtype(), dy);
  dispatch(stream, work, [&](auto& concrete) {
    InF32 in_f32(concrete, narrow_suits(concrete, spec, dx, w));
    impl::conv2d_backward_data(concrete, spec, in_f32(w), in_f32(dy), beta, in_f32(dx));
  });
}

void conv2d_backward_filter(Stream& stream, const Conv2dSpec& spec, ConstView x, ConstView dy,
                            float beta, View dw) {
  const Work work = require_conv2d("conv2d_backward_filter", stream, spec, x, dw, DType::f32, dy);
  dispatch(stream, work, [&](auto& concrete) {
    InF32 in_f32(concrete, narrow_suits(concrete, spec, x, dw));
    impl::conv2d_backward_filter(concrete, spec, in_f32(x), in_f32(dy), beta, dw);
  });
}

}  // namespace ringlet
