#include "kernels/cpu/relu.h"

#include "kernels/cpu/loops.h"
#include "kernels/elements.h"

namespace ringlet::impl {

void relu_forward(CpuStream& stream, const ConstView& x_view, const View& y_view) {
  const float* x = x_view.f32();
  float* y = y_view.f32();
  for_each_element(stream, x_view.storage(), [=](std::int64_t i) { y[i] = element::relu(x[i]); });
}

void relu_backward(CpuStream& stream, const ConstView& y_view, const ConstView& dy_view, float beta,
                   const View& dx_view) {
  const float* y = y_view.f32();
  const float* dy = dy_view.f32();
  float* dx = dx_view.f32();
  const std::int64_t n = y_view.storage();
  if (beta == 0) {
    for_each_element(stream, n,
                     [=](std::int64_t i) { dx[i] = element::relu_gradient(y[i], dy[i]); });
  } else {
    for_each_element(stream, n, [=](std::int64_t i) {
      dx[i] = beta * dx[i] + element::relu_gradient(y[i], dy[i]);
    });
  }
}

}  // namespace ringlet::impl
