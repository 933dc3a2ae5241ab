#include "kernels/peer_copy.h"

#include "kernels/contract.h"
#include "kernels/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void copy_from_device(Stream& stream, DeviceId from, ConstView x, View y) {
  constexpr const char* kName = "copy_from_device";
  require_same_kind(kName, x, y);
  require(from.kind == stream.device().id().kind, kName, "the devices are of different kinds");
  const Work work{kName, 0, total_bytes(x, y)};
  dispatch(stream, work, [&](auto& concrete) { impl::copy_from_device(concrete, from, x, y); });
}

}  // namespace ringlet
