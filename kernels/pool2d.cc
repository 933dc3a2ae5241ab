#include "kernels/pool2d.h"

#include <string>

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_spec(const char* operation, const Pool2dSpec& spec) {
  require(spec.kernel.h >= 1 && spec.kernel.w >= 1, operation,
          "the window should be at least 1 x 1");
  require(spec.stride.h >= 1 && spec.stride.w >= 1, operation, "the stride should be at least 1");
  require(spec.padding.h >= 0 && spec.padding.w >= 0 && 2 * spec.padding.h <= spec.kernel.h &&
              2 * spec.padding.w <= spec.kernel.w,
          operation, "the padding should be between 0 and half of the window");
}

std::int64_t output_extent(std::int64_t input, int kernel, int stride, int padding,
                           bool ceil_mode) {
  const std::int64_t room =
      input + 2 * std::int64_t{padding} - kernel + (ceil_mode ? stride - 1 : 0);
  if (room < 0) return 0;
  const std::int64_t last = room / stride;
  const bool starts_beyond = ceil_mode && last * stride >= input + padding;
  return starts_beyond ? last : last + 1;
}

Shape output_shape(const char* operation, const Pool2dSpec& spec, const Shape& x) {
  require_spec(operation, spec);
  require(x.rank() == 4, operation, "the tensor should be [N, C, H, W]");
  const std::int64_t height =
      output_extent(x[2], spec.kernel.h, spec.stride.h, spec.padding.h, spec.ceil_mode);
  const std::int64_t width =
      output_extent(x[3], spec.kernel.w, spec.stride.w, spec.padding.w, spec.ceil_mode);
  if (height < 1 || width < 1) {
    throw ContractError(std::string(operation) + ": the window " + std::to_string(spec.kernel.h) +
                        " x " + std::to_string(spec.kernel.w) + " does not fit into the input " +
                        x.to_string());
  }
  return {x[0], x[1], height, width};
}

/// x (or dx) and y (or dy). Returns the cost.
Work require_pool2d(const char* operation, const Pool2dSpec& spec, const ConstView& x,
                    const ConstView& y) {
  require_activations(operation, x, y);
  require_shape(operation, y, output_shape(operation, spec, x.shape()));
  require_same_layout(operation, x, y);
  return {operation, static_cast<double>(y.count()) * spec.kernel.h * spec.kernel.w,
          total_bytes(x, y)};
}

void require_winner(const char* operation, const ConstView& winner, const ConstView& y) {
  require_dtype(operation, winner, DType::i32);
  require_shape(operation, winner, y.shape());
  require_same_layout(operation, winner, y);
}

}  // namespace

Shape pool2d_output_shape(const Pool2dSpec& spec, const Shape& x) {
  return output_shape("pool2d_output_shape", spec, x);
}

void avg_pool2d_forward(Stream& stream, const Pool2dSpec& spec, ConstView x, View y) {
  const bool to_nchw =
      spec == Pool2dSpec{} && x.layout() == Layout::nhwc && y.layout() == Layout::nchw;
  const ConstView like_x(y.address(), y.shape(), y.dtype(), to_nchw ? x.layout() : y.layout());
  const Work work = require_pool2d("avg_pool2d_forward", spec, x, like_x);
  dispatch_in_f32(stream, work, impl::any::avg_pool2d_forward, spec, x, y);
}

void avg_pool2d_backward(Stream& stream, const Pool2dSpec& spec, ConstView dy, float beta,
                         View dx) {
  const Work work = require_pool2d("avg_pool2d_backward", spec, dx, dy);
  dispatch_in_f32(stream, work, impl::any::avg_pool2d_backward, spec, dy, beta, dx);
}

void max_pool2d_forward(Stream& stream, const Pool2dSpec& spec, ConstView x, View y, View winner) {
  const Work work = require_pool2d("max_pool2d_forward", spec, x, y);
  require_winner(work.operation, winner, y);
  dispatch_in_f32(stream, work, impl::any::max_pool2d_forward, spec, x, y, winner);
}

void max_pool2d_backward(Stream& stream, const Pool2dSpec& spec, ConstView dy, ConstView winner,
                         float beta, View dx) {
  const Work work = require_pool2d("max_pool2d_backward", spec, dx, dy);
  require_winner(work.operation, winner, dy);
  dispatch_in_f32(stream, work, impl::any::max_pool2d_backward, spec, dy, winner, beta, dx);
}

}  // namespace ringlet
