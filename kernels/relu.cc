#include "kernels/relu.h"

#include "kernels/contract.h"
#include "kernels/dispatch.h"
#include "kernels/implementations.h"
#include "kernels/in_f32.h"

namespace ringlet {

void relu_forward(Stream& stream, ConstView x, View y) {
  constexpr const char* kName = "relu_forward";
  require_activations(kName, x);
  require_same_kind(kName, x, y);
  const Work work{kName, static_cast<double>(x.count()), total_bytes(x, y)};
  dispatch(stream, work, [&](auto& concrete) {
    InF32 in_f32(concrete);
    impl::relu_forward(concrete, in_f32(x), in_f32(y));
  });
}

void relu_backward(Stream& stream, ConstView y, ConstView dy, float beta, View dx) {
  constexpr const char* kName = "relu_backward";
  require_activations(kName, y);
  require_same_kind(kName, y, dy);
  require_same_kind(kName, y, dx);
  const Work work{kName, static_cast<double>(y.count()), total_bytes(y, dy, dx)};
  dispatch(stream, work, [&](auto& concrete) {
    InF32 in_f32(concrete);
    impl::relu_backward(concrete, in_f32(y), in_f32(dy), beta, in_f32(dx));
  });
}

}  // namespace ringlet
