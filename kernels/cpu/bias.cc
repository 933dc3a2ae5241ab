#include "kernels/bias.h"

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/loops.h"

namespace ringlet::impl {

namespace {

std::int64_t pixels_of(const Shape& shape) { return shape.rank() == 4 ? shape[2] * shape[3] : 1; }

float sum(const float* values, std::int64_t n) {
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += values[i];
  return total;
}

}  // namespace

void bias_forward(CpuStream& stream, const ConstView& x_view, const ConstView& b_view,
                  const View& y_view) {
  if (in_lanes(x_view)) return lanes::bias_forward(stream, x_view, b_view, y_view);
  const std::int64_t channels = x_view.shape()[1], pixels = pixels_of(x_view.shape());
  const float* x = x_view.f32();
  const float* b = b_view.f32();
  float* y = y_view.f32();
  for_each_item(stream, x_view.shape()[0] * channels, [=](std::int64_t plane) {
    finish_channel(x + plane * pixels, b[plane % channels], Activation::none, pixels,
                   y + plane * pixels);
  });
}

void bias_backward(CpuStream& stream, const ConstView& dy_view, float beta, const View& db_view) {
  if (in_lanes(dy_view)) {
    return lanes::bias_backward(stream, dy_view, beta, db_view);
  }
  const std::int64_t samples = dy_view.shape()[0], channels = dy_view.shape()[1];
  const std::int64_t pixels = pixels_of(dy_view.shape());
  const float* dy = dy_view.f32();
  float* db = db_view.f32();
  for_each_item(stream, channels, [=](std::int64_t c) {
    double total = 0;  // of many samples
    for (std::int64_t n = 0; n < samples; ++n) {
      total += sum(dy + (n * channels + c) * pixels, pixels);
    }
    db[c] = element::blend(beta, db[c], static_cast<float>(total));
  });
}

}  // namespace ringlet::impl
