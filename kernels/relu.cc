#include "kernels/relu.h"

#include "kernels/contract.h"
#include "kernels/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void relu_forward(Stream& stream, ConstView x, View y) {
  constexpr const char* kName = "relu_forward";
  require_f32(kName, x);
  require_same_kind(kName, x, y);
  const Work work{kName, static_cast<double>(x.count()), total_bytes(x, y)};
  dispatch(stream, work, [&](auto& concrete) { impl::relu_forward(concrete, x, y); });
}

void relu_backward(Stream& stream, ConstView y, ConstView dy, float beta, View dx) {
  constexpr const char* kName = "relu_backward";
  require_f32(kName, y);
  require_same_kind(kName, y, dy);
  require_same_kind(kName, y, dx);
  const Work work{kName, static_cast<double>(y.count()), total_bytes(y, dy, dx)};
  dispatch(stream, work, [&](auto& concrete) { impl::relu_backward(concrete, y, dy, beta, dx); });
}

}  // namespace ringlet
