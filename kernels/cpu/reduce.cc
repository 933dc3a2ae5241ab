#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/reduction/table.h"

namespace ringlet::impl {

void reduce(CpuStream& stream, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
            const ReduceOptions& options) {
  constexpr std::int64_t kPart = 1 << 15;  // elements that are worth another thread's wake-up
  // Not cleared first, which would take as long as a small reduction.
  std::array<const void*, kMaxReduced> sources;  // NOLINT(*-member-init)
  std::array<void*, kMaxReduced> targets;        // NOLINT(*-member-init)
  std::transform(xs.begin(), xs.end(), sources.begin(), [](const auto& x) { return x.data(); });
  std::transform(ys.begin(), ys.end(), targets.begin(), [](const auto& y) { return y.data(); });
  const ReduceArguments arguments{.xs = sources.data(),
                                  .sources = static_cast<int>(xs.size()),
                                  .ys = targets.data(),
                                  .targets = static_cast<int>(ys.size()),
                                  .divisor = op == ReduceOp::mean ? options.divisor : 1,
                                  .stores = options.stores};
  const ReduceFunction function = reduction_for(stream.isa(), op, ys[0].dtype());
  const std::int64_t count = ys[0].storage();
  stream.parallel_for((count + kPart - 1) / kPart, [&](std::int64_t first, std::int64_t last, int) {
    function(arguments, first * kPart, std::min(count, last * kPart));
  });
}

}  // namespace ringlet::impl
