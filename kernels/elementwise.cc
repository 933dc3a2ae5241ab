#include "kernels/elementwise.h"

#include "kernels/contract.h"
#include "kernels/cpu/in_f32.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void fill(Stream& stream, float value, View y) {
  constexpr const char* kName = "fill";
  require(y.dtype() == DType::f32 || y.dtype() == DType::i32, kName,
          "the elements should be f32 or i32");
  const Work work{kName, 0, total_bytes(y)};
  dispatch(stream, work, impl::any::fill, value, y);
}

void copy(Stream& stream, ConstView x, View y) {
  constexpr const char* kName = "copy";
  require_same_kind(kName, x, y);
  const Work work{kName, 0, total_bytes(x, y)};
  dispatch(stream, work, impl::any::copy, x, y);
}

void copy_from_device(Stream& stream, DeviceId from, ConstView x, View y) {
  constexpr const char* kName = "copy_from_device";
  require_same_kind(kName, x, y);
  require(from.kind == stream.device().id().kind, kName, "the devices are of different kinds");
  const Work work{kName, 0, total_bytes(x, y)};
  dispatch(stream, work, impl::any::copy_from_device, from, x, y);
}

void cast(Stream& stream, ConstView x, View y) {
  constexpr const char* kName = "cast";
  const bool one_each = (x.dtype() == DType::f32 && is_narrow(y.dtype())) ||
                        (is_narrow(x.dtype()) && y.dtype() == DType::f32);
  require(one_each, kName, "goes from f32 to f16 or bf16, or back");
  require_same_shape(kName, x, y);
  require_same_layout(kName, x, y);
  const Work work{kName, 0, total_bytes(x, y)};
  dispatch(stream, work, impl::any::cast, x, y);
}

void accumulate(Stream& stream, ConstView x, View y) {
  constexpr const char* kName = "accumulate";
  require_f32(kName, x);
  require_same_kind(kName, x, y);
  const Work work{kName, static_cast<double>(x.storage()), total_bytes(x, y, y)};
  dispatch(stream, work, impl::any::accumulate, x, y);
}

void add(Stream& stream, ConstView a, ConstView b, View y) {
  constexpr const char* kName = "add";
  require_activations(kName, a);
  require_same_kind(kName, a, b);
  require_same_kind(kName, a, y);
  const Work work{kName, static_cast<double>(a.storage()), total_bytes(a, b, y)};
  dispatch_in_f32(stream, work, impl::any::add, a, b, y);
}

void scale(Stream& stream, float alpha, ConstView x, float beta, View y) {
  constexpr const char* kName = "scale";
  require_activations(kName, x);
  require_same_kind(kName, x, y);
  const Work work{kName, 3.0 * static_cast<double>(x.storage()), total_bytes(x, y)};
  dispatch_in_f32(stream, work, impl::any::scale, alpha, x, beta, y);
}

namespace {

/// y = f(x): `implementation` is that of an activation, called `name`.
template <class F>
void activate(Stream& stream, const char* name, const F& implementation, const ConstView& x,
              const View& y) {
  require_activations(name, x);
  require_same_kind(name, x, y);
  const Work work{name, static_cast<double>(x.count()), total_bytes(x, y)};
  dispatch_in_f32(stream, work, implementation, x, y);
}

/// Its gradient, from what it gave.
template <class F>
void activate_backward(Stream& stream, const char* name, const F& implementation,
                       const ConstView& y, const ConstView& dy, float beta, const View& dx) {
  require_activations(name, y);
  require_same_kind(name, y, dy);
  require_same_kind(name, y, dx);
  const Work work{name, static_cast<double>(y.count()), total_bytes(y, dy, dx)};
  dispatch_in_f32(stream, work, implementation, y, dy, beta, dx);
}

}  // namespace

void relu_forward(Stream& stream, ConstView x, View y) {
  activate(stream, "relu_forward", impl::any::relu_forward, x, y);
}

void relu_backward(Stream& stream, ConstView y, ConstView dy, float beta, View dx) {
  activate_backward(stream, "relu_backward", impl::any::relu_backward, y, dy, beta, dx);
}

void sigmoid_forward(Stream& stream, ConstView x, View y) {
  activate(stream, "sigmoid_forward", impl::any::sigmoid_forward, x, y);
}

void sigmoid_backward(Stream& stream, ConstView y, ConstView dy, float beta, View dx) {
  activate_backward(stream, "sigmoid_backward", impl::any::sigmoid_backward, y, dy, beta, dx);
}

void tanh_forward(Stream& stream, ConstView x, View y) {
  activate(stream, "tanh_forward", impl::any::tanh_forward, x, y);
}

void tanh_backward(Stream& stream, ConstView y, ConstView dy, float beta, View dx) {
  activate_backward(stream, "tanh_backward", impl::any::tanh_backward, y, dy, beta, dx);
}

}  // namespace ringlet
