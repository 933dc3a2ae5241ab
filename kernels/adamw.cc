#include "kernels/adamw.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void adamw_update(Stream& stream, const AdamWSpec& spec, ConstView rates, View value,
                  ConstView gradient, View mean, View square, ConstView scale, ConstView decays) {
  constexpr const char* kName = "adamw_update";
  require_dense(kName, rates, Shape{4});
  require_rank(kName, value, 1);
  for (const ConstView& view : {ConstView(value), gradient, ConstView(mean), ConstView(square)}) {
    require_dense(kName, view, value.shape());
  }
  require_update_views(kName, scale, decays, value.count());
  require(spec.epsilon > 0, kName, "epsilon must be above 0: averages start at 0");
  const Work work{kName, 14.0 * static_cast<double>(value.count()),
                  total_bytes(value, value, gradient, mean, mean, square, square, decays)};
  dispatch(stream, work, impl::any::adamw_update, spec, rates, value, gradient, mean, square, scale,
           decays);
}

}  // namespace ringlet
