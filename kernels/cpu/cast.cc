#include "kernels/cpu/cast.h"

#include <algorithm>

#include "kernels/cpu/reduction/table.h"

namespace ringlet::impl {

void cast(CpuStream& stream, const ConstView& x, const View& y) {
  constexpr std::int64_t kPart = 1 << 15;  // elements that are worth another thread's wake-up
  const CastFunction function = cast_for(stream.isa(), x.dtype(), y.dtype());
  const std::int64_t count = y.storage();
  stream.parallel_for((count + kPart - 1) / kPart, [&](std::int64_t first, std::int64_t last, int) {
    function(x.data(), y.data(), first * kPart, std::min(count, last * kPart));
  });
}

}  // namespace ringlet::impl
