#include "kernels/l2_norm.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void l2_norm(Stream& stream, ConstView x, View norm, const NormLimit& limit) {
  constexpr const char* kName = "l2_norm";
  require_rank(kName, x, 1);
  require_dense(kName, x, x.shape());
  require_dense(kName, norm, Shape{1});
  if (!limit.factor.absent()) require_dense(kName, limit.factor, Shape{1});
  const Work work{kName, 2.0 * static_cast<double>(x.count()), total_bytes(x, norm)};
  dispatch(stream, work, impl::any::l2_norm, x, norm, limit);
}

}  // namespace ringlet
