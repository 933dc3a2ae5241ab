#include "kernels/sgd.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void sgd_update(Stream& stream, const SgdSpec& spec, ConstView rates, View value,
                ConstView gradient, View velocity, ConstView scale, ConstView decays) {
  constexpr const char* kName = "sgd_update";
  require_dense(kName, rates, Shape{2});
  require_rank(kName, value, 1);
  require_dense(kName, value, value.shape());
  require_dense(kName, gradient, value.shape());
  if (!velocity.absent()) require_dense(kName, velocity, value.shape());
  require_update_views(kName, scale, decays, value.count());
  const Work work{kName, 7.0 * static_cast<double>(value.count()),
                  total_bytes(value, value, gradient, velocity, velocity, decays)};
  dispatch(stream, work, impl::any::sgd_update, spec, rates, value, gradient, velocity, scale,
           decays);
}

}  // namespace ringlet
