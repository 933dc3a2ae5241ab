#include "kernels/cast.h"

#include "kernels/contract.h"
#include "kernels/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void cast(Stream& stream, ConstView x, View y) {
  constexpr const char* kName = "cast";
  const bool one_each = (x.dtype() == DType::f32 && is_narrow(y.dtype())) ||
                        (is_narrow(x.dtype()) && y.dtype() == DType::f32);
  require(one_each, kName, "goes from f32 to f16 or bf16, or back");
  require_same_shape(kName, x, y);
  require_same_layout(kName, x, y);
  const Work work{kName, 0, total_bytes(x, y)};
  dispatch(stream, work, [&](auto& concrete) { impl::cast(concrete, x, y); });
}

}  // namespace ringlet
