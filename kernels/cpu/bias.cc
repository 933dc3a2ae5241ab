#include "kernels/bias.h"

#include <algorithm>

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/loops.h"
#include "kernels/implementations.h"

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

void bias_relu_backward(CpuStream& stream, const ConstView& a, const ConstView& dy, const View& dz,
                        float beta, const View& db) {
  relu_backward(stream, a, dy, 0, dz);
  bias_backward(stream, dz, beta, db);
}

void bias_relu_avg_pool2d_backward(CpuStream& stream, const ConstView& dy_view, const View& a_view,
                                   float beta, const View& db) {
  require(!in_lanes(a_view), "bias_relu_avg_pool2d_backward", "is for the layout nchw");
  const std::int64_t height = a_view.shape()[2], width = a_view.shape()[3];
  const std::int64_t out_h = dy_view.shape()[2], out_w = dy_view.shape()[3];
  const float* dy = dy_view.f32();
  float* a = a_view.f32();
  for_each_item(stream, a_view.shape()[0] * a_view.shape()[1], [=](std::int64_t plane) {
    float* pixels = a + plane * height * width;
    for (std::int64_t i = 0; i < 2 * out_h; ++i) {
      float* row = pixels + i * width;
      const float* shares = dy + (plane * out_h + i / 2) * out_w;
#pragma omp simd
      for (std::int64_t j = 0; j < out_w; ++j) {
        const float share = 0.0F + 0.25F * shares[j];  // as pooling writes it: never -0
        row[2 * j] = element::relu_gradient(row[2 * j], share);
        row[2 * j + 1] = element::relu_gradient(row[2 * j + 1], share);
      }
      std::fill(row + 2 * out_w, row + width, 0.0F);
    }
    std::fill(pixels + 2 * out_h * width, pixels + height * width, 0.0F);
  });
  if (!db.absent()) bias_backward(stream, a_view, beta, db);
}

}  // namespace ringlet::impl
