#include "kernels/bias.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"
#include "kernels/pool2d.h"

namespace ringlet {

namespace {

void require_channels(const char* operation, const ConstView& x) {
  require_activations(operation, x);
  require(x.shape().rank() == 2 || x.shape().rank() == 4, operation,
          "the tensor should be [N, C] or [N, C, H, W]");
}

}  // namespace

void bias_forward(Stream& stream, ConstView x, ConstView b, View y) {
  constexpr const char* kName = "bias_forward";
  require_channels(kName, x);
  require_same_kind(kName, x, y);
  require_dense(kName, b, Shape{x.shape()[1]});
  const Work work{kName, static_cast<double>(x.count()), total_bytes(x, b, y)};
  dispatch_in_f32(stream, work, impl::any::bias_forward, x, b, y);
}

void bias_backward(Stream& stream, ConstView dy, float beta, View db) {
  constexpr const char* kName = "bias_backward";
  require_channels(kName, dy);
  require_dense(kName, db, Shape{dy.shape()[1]});
  const Work work{kName, static_cast<double>(dy.count()), total_bytes(dy, db)};
  dispatch_in_f32(stream, work, impl::any::bias_backward, dy, beta, db);
}

void bias_relu_backward(Stream& stream, ConstView a, ConstView dy, View dz, float beta, View db) {
  constexpr const char* kName = "bias_relu_backward";
  require_channels(kName, dy);
  require_same_kind(kName, dy, a);
  require_same_kind(kName, dy, dz);
  require_dense(kName, db, Shape{dy.shape()[1]});
  const Work work{kName, 2 * static_cast<double>(dy.count()), total_bytes(a, dy, dz, db)};
  dispatch_in_f32(stream, work, impl::any::bias_relu_backward, a, dy, dz, beta, db);
}

void bias_relu_avg_pool2d_backward(Stream& stream, ConstView dy, View a, float beta, View db) {
  constexpr const char* kName = "bias_relu_avg_pool2d_backward";
  require_activations(kName, dy, a);
  require(a.layout() != Layout::lanes, kName, "there is none in the layout lanes");
  const bool from_nchw = a.layout() == Layout::nhwc && dy.layout() == Layout::nchw;
  if (!from_nchw) require_same_layout(kName, a, dy);
  require_shape(kName, dy, pool2d_output_shape({}, a.shape()));
  if (!db.absent()) require_dense(kName, db, Shape{dy.shape()[1]});
  const Work work{kName, 3 * static_cast<double>(a.count()), total_bytes(dy, a, a, db)};
  dispatch_in_f32(stream, work, impl::any::bias_relu_avg_pool2d_backward, dy, a, beta, db);
}

}  // namespace ringlet
