#include "kernels/conv2d_relu_avg_pool2d.h"

#include <string>

#include "kernels/contract.h"
#include "kernels/cpu/in_f32.h"
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/devices/dispatch.h"

namespace ringlet {

namespace {

Shape pooled_shape(const char* operation, const Conv2dSpec& spec, const Shape& x, const Shape& w) {
  const Shape full = conv2d_output_shape(spec, x, w);
  if (full[2] < 2 || full[3] < 2) {
    throw ContractError(std::string(operation) + ": the convolution's result " + full.to_string() +
                        " is too small for a 2 x 2 window");
  }
  return {full[0], full[1], full[2] / 2, full[3] / 2};
}

/// x (or dx), w (or dw, of type `weights`), y (or dy) and the mask. Returns the cost: of the pixels
/// that are pooled.
Work require_all(const char* operation, const Conv2dSpec& spec, const ConstView& x,
                 const ConstView& w, DType weights, const ConstView& y, const ConstView& mask) {
  require_activations(operation, x, y);
  require_layout(operation, x, Layout::lanes);
  require_layout(operation, y, Layout::lanes);
  require_shape(operation, y, pooled_shape(operation, spec, x.shape(), w.shape()));
  require_weights(operation, w, w.shape(), weights);
  require_dtype(operation, mask, DType::u8);
  require_layout(operation, mask, Layout::nchw);
  require_shape(operation, mask, conv2d_relu_avg_pool2d_mask_shape(y.shape()));
  const double pixels = 4.0 * static_cast<double>(y.count());
  return {operation, 2.0 * pixels * static_cast<double>(w.shape().count_per_sample()),
          total_bytes(x, w, y, mask)};
}

}  // namespace

bool conv2d_relu_avg_pool2d_supported(DeviceKind device, Layout layout, const Conv2dSpec&) {
  return layout == Layout::lanes && (device == DeviceKind::cpu || device == DeviceKind::meta);
}

Shape conv2d_relu_avg_pool2d_output_shape(const Conv2dSpec& spec, const Shape& x, const Shape& w) {
  return pooled_shape("conv2d_relu_avg_pool2d_output_shape", spec, x, w);
}

Shape conv2d_relu_avg_pool2d_mask_shape(const Shape& y) {
  return {lane_blocks(y[0]) * y.count_per_sample() * 4 * kLanes / 8};
}

void conv2d_relu_avg_pool2d_forward(Stream& stream, const Conv2dSpec& spec, ConstView x,
                                    ConstView w, ConstView bias, View y, View mask) {
  const Work work = require_all("conv2d_relu_avg_pool2d_forward", spec, x, w, x.dtype(), y, mask);
  if (!bias.absent()) require_dense(work.operation, bias, Shape{w.shape()[0]});
  dispatch(stream, work, [&](CpuStream& cpu) {
    InF32 in_f32(cpu);
    lanes::conv2d_relu_avg_pool2d_forward(cpu, spec, in_f32(x), in_f32(w), bias, in_f32(y), mask);
  });
}

void conv2d_relu_avg_pool2d_backward_data(Stream& stream, const Conv2dSpec& spec, ConstView w,
                                          ConstView dy, ConstView mask, float beta, View dx) {
  const Work work =
      require_all("conv2d_relu_avg_pool2d_backward_data", spec, dx, w, dx.dtype(), dy, mask);
  dispatch(stream, work, [&](CpuStream& cpu) {
    InF32 in_f32(cpu);
    lanes::conv2d_relu_avg_pool2d_backward_data(cpu, spec, in_f32(w), in_f32(dy), mask, beta,
                                                in_f32(dx));
  });
}

void conv2d_relu_avg_pool2d_backward_filter(Stream& stream, const Conv2dSpec& spec, ConstView x,
                                            ConstView dy, ConstView mask, float beta_dw, View dw,
                                            float beta_db, View db) {
  const Work work =
      require_all("conv2d_relu_avg_pool2d_backward_filter", spec, x, dw, DType::f32, dy, mask);
  if (!db.absent()) require_dense(work.operation, db, Shape{dw.shape()[0]});
  dispatch(stream, work, [&](CpuStream& cpu) {
    InF32 in_f32(cpu);
    lanes::conv2d_relu_avg_pool2d_backward_filter(cpu, spec, in_f32(x), in_f32(dy), mask, beta_dw,
                                                  dw, beta_db, db);
  });
}

}  // namespace ringlet
