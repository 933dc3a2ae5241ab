#include "kernels/normalize.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void normalize_forward(Stream& stream, const Normalization& normalization, ConstView x, View y) {
  constexpr const char* kName = "normalize_forward";
  require_dtype(kName, x, DType::u8);
  require_layout(kName, x, Layout::nchw);
  require_rank(kName, x, 4);
  require_f32(kName, y);
  require_same_shape(kName, x, y);
  require(normalization.deviation > 0, kName, "the deviation should be above 0");
  const Work work{kName, 3.0 * static_cast<double>(x.count()), total_bytes(x, y)};
  dispatch(stream, work, impl::any::normalize_forward, normalization, x, y);
}

void relayout(Stream& stream, ConstView x, View y) {
  constexpr const char* kName = "relayout";
  require_activations(kName, x, y);
  require_same_shape(kName, x, y);
  const Work work{kName, 0, total_bytes(x, y)};
  dispatch_in_f32(stream, work, impl::any::relayout, x, y);
}

}  // namespace ringlet
