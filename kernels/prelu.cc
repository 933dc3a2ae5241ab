#include "kernels/prelu.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_slope(const char* operation, const ConstView& x, const ConstView& slope) {
  require_activations(operation, x);
  require(x.shape().rank() == 2 || x.shape().rank() == 4, operation,
          "the tensor should be [N, C] or [N, C, H, W]");
  require_dense(operation, slope, Shape{slope.count() == 1 ? 1 : x.shape()[1]});
}

}  // namespace

void prelu_forward(Stream& stream, ConstView x, ConstView slope, View y) {
  constexpr const char* kName = "prelu_forward";
  require_slope(kName, x, slope);
  require_same_kind(kName, x, y);
  const Work work{kName, static_cast<double>(x.count()), total_bytes(x, slope, y)};
  dispatch_in_f32(stream, work, impl::any::prelu_forward, x, slope, y);
}

void prelu_backward(Stream& stream, ConstView x, ConstView slope, ConstView dy, float beta, View dx,
                    float beta_slope, View dslope) {
  constexpr const char* kName = "prelu_backward";
  require_slope(kName, x, slope);
  require_same_kind(kName, x, dy);
  if (!dx.absent()) require_same_kind(kName, x, dx);
  if (!dslope.absent()) require_dense(kName, dslope, slope.shape());
  const Work work{kName, 4 * static_cast<double>(x.count()), total_bytes(x, slope, dy, dx, dslope)};
  dispatch_in_f32(stream, work, impl::any::prelu_backward, x, slope, dy, beta, dx, beta_slope,
                  dslope);
}

}  // namespace ringlet
