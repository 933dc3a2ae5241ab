// The CPU's implementations of kernels/elementwise.h, ema.h and sgd.h.
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/cpu/decay_loop.h"
#include "kernels/cpu/loops.h"
#include "kernels/elements.h"
#include "kernels/ema.h"
#include "kernels/sgd.h"

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

void accumulate(CpuStream& stream, const ConstView& x, const View& y) {
  map(stream, y, std::plus<float>{}, y, x);
}

void add(CpuStream& stream, const ConstView& a, const ConstView& b, const View& y) {
  map(stream, y, std::plus<float>{}, a, b);
}

void scale(CpuStream& stream, float alpha, const ConstView& x, float beta, const View& y) {
  const auto product = [=](float value) { return alpha * value; };
  const auto sum = [=](float value, float old) { return alpha * value + beta * old; };
  if (beta == 0) {
    map(stream, y, product, x);
  } else {
    map(stream, y, sum, x, y);
  }
}

namespace {

/// dx = beta * dx + gradient(y, dy)
template <class F>
void map_gradient(CpuStream& stream, const ConstView& y, const ConstView& dy, float beta,
                  const View& dx, F gradient) {
  const auto sum = [=](float a, float da, float old) { return beta * old + gradient(a, da); };
  if (beta == 0) {
    map(stream, dx, gradient, y, dy);
  } else {
    map(stream, dx, sum, y, dy, dx);
  }
}

}  // namespace

void relu_forward(CpuStream& stream, const ConstView& x, const View& y) {
  map(
      stream, y, [](float value) { return element::relu(value); }, x);
}

void relu_backward(CpuStream& stream, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx) {
  map_gradient(stream, y, dy, beta, dx,
               [](float a, float da) { return element::relu_gradient(a, da); });
}

void sigmoid_forward(CpuStream& stream, const ConstView& x, const View& y) {
  map(
      stream, y, [](float value) { return element::sigmoid(value); }, x);
}

void sigmoid_backward(CpuStream& stream, const ConstView& y, const ConstView& dy, float beta,
                      const View& dx) {
  map_gradient(stream, y, dy, beta, dx,
               [](float a, float da) { return element::sigmoid_gradient(a, da); });
}

void tanh_forward(CpuStream& stream, const ConstView& x, const View& y) {
  map(
      stream, y, [](float value) { return std::tanh(value); }, x);
}

void tanh_backward(CpuStream& stream, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx) {
  map_gradient(stream, y, dy, beta, dx,
               [](float a, float da) { return element::tanh_gradient(a, da); });
}

void ema_update(CpuStream& stream, const ConstView& share_view, const ConstView& value,
                const View& mean, const ConstView& scale) {
  if (!scale.absent() && *scale.f32() == 0) return;
  const float share = *share_view.f32();
  map(
      stream, mean, [share](float x, float old) { return element::ema(share, x, old); }, value,
      mean);
}

void sgd_update(CpuStream& stream, const SgdSpec& spec, const ConstView& rates_view,
                const View& value_view, const ConstView& gradient_view, const View& velocity_view,
                const ConstView& scale_view, const ConstView& decays) {
  const element::SgdRates rates{rates_view.f32()[0], rates_view.f32()[1], spec.weight_decay,
                                spec.nesterov};
  const float scale = scale_view.absent() ? 1.0F : *scale_view.f32();
  if (scale == 0) return;
  float* value = value_view.f32();
  const float* gradient = gradient_view.f32();
  const bool keeps = !velocity_view.absent();
  require(keeps || rates.momentum == 0, "sgd_update", "a momentum above 0 needs velocities");
  float* velocity = keeps ? velocity_view.f32() : nullptr;
  const std::int64_t n = value_view.count();
  stream.parallel_for(chunks_of(n), [=](std::int64_t first, std::int64_t last, int) {
    for (DecayRun run(decays, n, first, last); run.next();) {
      element::SgdRates own = rates;
      if (!run.decays) own.weight_decay = 0;
      if (velocity == nullptr) {
#pragma omp simd
        for (std::int64_t i = run.begin; i < run.end; ++i) {
          float none = 0;
          element::sgd_step(own, scale * gradient[i], none, value[i]);
        }
        continue;
      }
#pragma omp simd
      for (std::int64_t i = run.begin; i < run.end; ++i) {
        element::sgd_step(own, scale * gradient[i], velocity[i], value[i]);
      }
    }
  });
}

}  // namespace ringlet::impl
