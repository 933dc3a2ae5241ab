#include "kernels/ema.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void ema_update(Stream& stream, ConstView share, ConstView value, View mean, ConstView scale) {
  constexpr const char* kName = "ema_update";
  require_dense(kName, share, Shape{1});
  require_rank(kName, mean, 1);
  require_dense(kName, mean, mean.shape());
  require_dense(kName, value, mean.shape());
  if (!scale.absent()) require_dense(kName, scale, Shape{1});
  const Work work{kName, 3.0 * static_cast<double>(mean.count()), total_bytes(value, mean, mean)};
  dispatch(stream, work, impl::any::ema_update, share, value, mean, scale);
}

}  // namespace ringlet
