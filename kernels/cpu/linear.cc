// Products of whole matrices, cut into blocks of outputs. The size of a block does not depend on
// the number of threads, so neither do the results' bits.
#include "kernels/linear.h"

#include <algorithm>

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/loops.h"
#include "kernels/implementations.h"

namespace ringlet::impl {

namespace {

constexpr std::int64_t kBlock = 128;  // outputs (forward) or columns (backward) of one product

/// Calls f(begin, end) for consecutive blocks of [0, n).
template <class F>
void for_each_block(CpuStream& stream, std::int64_t n, F f) {
  for_each_item(stream, (n + kBlock - 1) / kBlock,
                [=](std::int64_t block) { f(block * kBlock, std::min(n, (block + 1) * kBlock)); });
}

}  // namespace

void linear_forward(CpuStream& stream, const ConstView& x_view, const ConstView& w_view,
                    const ConstView& bias_view, Activation activation, const View& y_view) {
  if (in_lanes(x_view)) {
    return lanes::linear_forward(stream, x_view, w_view, bias_view, activation, y_view);
  }
  const std::int64_t samples = x_view.shape()[0], inputs = x_view.shape()[1];
  const std::int64_t outputs = y_view.shape()[1];
  const float* x = x_view.f32();
  const float* w = w_view.f32();
  const float* bias = bias_view.absent() ? nullptr : bias_view.f32();
  float* y = y_view.f32();
  for_each_block(stream, outputs, [=](std::int64_t begin, std::int64_t end) {
    gemm(samples, end - begin, inputs, {x, inputs}, {w + begin * inputs, inputs, true}, 0,
         y + begin, outputs);
    for (std::int64_t n = 0; n < samples; ++n) {
      finish_features(bias == nullptr ? nullptr : bias + begin, activation, end - begin,
                      y + n * outputs + begin);
    }
  });
}

void linear_backward_data(CpuStream& stream, const ConstView& w_view, const ConstView& dy_view,
                          float beta, const View& dx_view) {
  if (in_lanes(dy_view)) {
    return lanes::linear_backward_data(stream, w_view, dy_view, beta, dx_view);
  }
  const std::int64_t samples = dx_view.shape()[0], inputs = dx_view.shape()[1];
  const std::int64_t outputs = dy_view.shape()[1];
  const float* w = w_view.f32();
  const float* dy = dy_view.f32();
  float* dx = dx_view.f32();
  for_each_block(stream, inputs, [=](std::int64_t begin, std::int64_t end) {
    gemm(samples, end - begin, outputs, {dy, outputs}, {w + begin, inputs}, beta, dx + begin,
         inputs);
  });
}

void linear_backward_weight(CpuStream& stream, const ConstView& x_view, const ConstView& dy_view,
                            float beta, const View& dw_view) {
  if (in_lanes(dy_view)) {
    return lanes::linear_backward_weight(stream, x_view, dy_view, beta, dw_view);
  }
  const std::int64_t samples = x_view.shape()[0], inputs = x_view.shape()[1];
  const std::int64_t outputs = dy_view.shape()[1];
  const float* x = x_view.f32();
  const float* dy = dy_view.f32();
  float* dw = dw_view.f32();
  for_each_block(stream, outputs, [=](std::int64_t begin, std::int64_t end) {
    gemm(end - begin, inputs, samples, {dy + begin, outputs, true}, {x, inputs}, beta,
         dw + begin * inputs, inputs);
  });
}

void linear_backward_weight_bias(CpuStream& stream, const ConstView& x, const ConstView& dy,
                                 float beta_dw, const View& dw, float beta_db, const View& db) {
  bias_backward(stream, dy, beta_db, db);
  linear_backward_weight(stream, x, dy, beta_dw, dw);
}

}  // namespace ringlet::impl
