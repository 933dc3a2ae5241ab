#include "kernels/reduce.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"
#include "kernels/reduction.h"

namespace ringlet {

void reduction::refuse_type(const char* message) { throw ContractError(message); }

void reduce(Stream& stream, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
            const ReduceOptions& options) {
  constexpr const char* kName = "reduce";
  constexpr std::size_t kMost = kMaxReduced;
  require(!xs.empty() && !ys.empty() && xs.size() <= kMost && ys.size() <= kMost, kName,
          "reads and writes 1 to 64 arrays");
  require(ys[0].dtype() != DType::u8, kName, "takes f32, f16, bf16 and i32, not u8");
  require(options.divisor >= 1, kName, "divides by a positive number");
  for (const ConstView& x : xs) require_same_kind(kName, x, ys[0]);
  for (const View& y : ys) require_same_kind(kName, y, ys[0]);
  const auto elements = static_cast<double>(ys[0].storage());
  const auto arrays = static_cast<double>(xs.size() + ys.size());
  const Work work{kName, static_cast<double>(xs.size() - 1) * elements,
                  arrays * elements * static_cast<double>(size_of(ys[0].dtype()))};
  dispatch(stream, work, impl::any::reduce, op, xs, ys, options);
}

}  // namespace ringlet
