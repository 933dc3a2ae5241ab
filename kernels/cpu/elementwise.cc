// The CPU's implementations of kernels/elementwise.h and kernels/relu.h.
#include <cstring>

#include "kernels/cpu/loops.h"
#include "kernels/elements.h"

namespace ringlet::impl {

namespace {

template <class T>
void fill_with(CpuStream& stream, T value, const View& view) {
  T* y = view.as<T>();
  for_each_element(stream, view.storage(), [=](std::int64_t i) { y[i] = value; });
}

}  // namespace

void fill(CpuStream& stream, float value, const View& y) {
  if (y.dtype() == DType::f32) {
    fill_with(stream, value, y);
  } else {
    fill_with(stream, static_cast<std::int32_t>(value), y);
  }
}

void copy(CpuStream& stream, const ConstView& x_view, const View& y_view) {
  constexpr std::int64_t kPart = 1 << 16;  // bytes
  const auto* x = static_cast<const char*>(x_view.data());
  auto* y = static_cast<char*>(y_view.data());
  const std::int64_t bytes = x_view.bytes();
  stream.parallel_for((bytes + kPart - 1) / kPart, [=](std::int64_t first, std::int64_t last, int) {
    const std::int64_t begin = first * kPart, end = std::min(bytes, last * kPart);
    std::memcpy(y + begin, x + begin, static_cast<std::size_t>(end - begin));
  });
}

void accumulate(CpuStream& stream, const ConstView& x_view, const View& y_view) {
  const float* x = x_view.f32();
  float* y = y_view.f32();
  for_each_element(stream, x_view.storage(), [=](std::int64_t i) { y[i] += x[i]; });
}

void add(CpuStream& stream, const ConstView& a_view, const ConstView& b_view, const View& y_view) {
  const float* a = a_view.f32();
  const float* b = b_view.f32();
  float* y = y_view.f32();
  for_each_element(stream, a_view.storage(), [=](std::int64_t i) { y[i] = a[i] + b[i]; });
}

void scale(CpuStream& stream, float alpha, const ConstView& x_view, float beta,
           const View& y_view) {
  const float* x = x_view.f32();
  float* y = y_view.f32();
  const std::int64_t n = x_view.storage();
  if (beta == 0) {
    for_each_element(stream, n, [=](std::int64_t i) { y[i] = alpha * x[i]; });
  } else {
    for_each_element(stream, n, [=](std::int64_t i) { y[i] = alpha * x[i] + beta * y[i]; });
  }
}

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
