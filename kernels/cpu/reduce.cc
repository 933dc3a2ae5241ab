// The CPU's implementations of kernels/reduce.h and kernels/cast.h: the loops of the stream's
// instruction set, over threads.
#include "kernels/reduce.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/reduction/table.h"

namespace ringlet::impl {

namespace {

/// Calls f(begin, end) on parts of [0, count) that are worth another thread's wake-up.
template <class F>
void for_each_part(CpuStream& stream, std::int64_t count, F f) {
  constexpr std::int64_t kPart = 1 << 15;  // elements
  stream.parallel_for((count + kPart - 1) / kPart, [&](std::int64_t first, std::int64_t last, int) {
    f(first * kPart, std::min(count, last * kPart));
  });
}

ReductionLoops loops_for(const CpuStream& stream) {
  return for_instruction_set(stream.isa(), [](auto set) { return loops_of(set); });
}

}  // namespace

void reduce(CpuStream& stream, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
            const ReduceOptions& options) {
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
  const ReduceFunction function = loops_for(stream).reduce(op, ys[0].dtype());
  for_each_part(stream, ys[0].storage(),
                [&](std::int64_t begin, std::int64_t end) { function(arguments, begin, end); });
}

void cast(CpuStream& stream, const ConstView& x, const View& y) {
  const CastFunction function = loops_for(stream).cast(x.dtype(), y.dtype());
  for_each_part(stream, y.storage(), [&](std::int64_t begin, std::int64_t end) {
    function(x.data(), y.data(), begin, end);
  });
}

}  // namespace ringlet::impl
