#include "kernels/reduce.h"

#include "kernels/contract.h"
#include "kernels/cpu/reduce_arrays.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"
#include "kernels/reduction.h"

namespace ringlet {

void reduction::refuse_type(const char* message) { throw ContractError(message); }

namespace {

constexpr const char* kName = "reduce";
constexpr const char* kTypes = "takes f32, f16, bf16 and i32, not u8";

Work work_of(std::size_t sources, std::size_t targets, std::int64_t count, DType dtype) {
  const auto elements = static_cast<double>(count);
  return {kName, static_cast<double>(sources - 1) * elements,
          static_cast<double>(sources + targets) * elements * static_cast<double>(size_of(dtype))};
}

void require_reducible(std::size_t sources, std::size_t targets, DType dtype,
                       const ReduceOptions& options) {
  require(1 <= sources && sources <= kMaxReduced && 1 <= targets && targets <= kMaxReduced, kName,
          "reads and writes 1 to 64 arrays");
  require(dtype != DType::u8, kName, kTypes);
  require(options.divisor >= 1, kName, "divides by a positive number");
}

}  // namespace

void reduce(Stream& stream, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
            const ReduceOptions& options) {
  require_reducible(xs.size(), ys.size(), ys.empty() ? DType::f32 : ys[0].dtype(), options);
  for (const ConstView& x : xs) require_same_kind(kName, x, ys[0]);
  for (const View& y : ys) require_same_kind(kName, y, ys[0]);
  dispatch(stream, work_of(xs.size(), ys.size(), ys[0].storage(), ys[0].dtype()), impl::any::reduce,
           op, xs, ys, options);
}

void reduce_arrays(Stream& stream, ReduceOp op, const HostArrays& arrays,
                   const ReduceOptions& options) {
  require_reducible(arrays.xs.size(), arrays.ys.size(), arrays.dtype, options);
  dispatch(stream, work_of(arrays.xs.size(), arrays.ys.size(), arrays.count, arrays.dtype),
           [&](CpuStream& cpu) { impl::reduce_arrays(cpu, op, arrays, options); });
}

void reduce_into(Stream& stream, ReduceOp op, const ConstView& x, const View& y) {
  require_same_kind(kName, x, y);
  require(y.dtype() != DType::u8, kName, kTypes);
  dispatch(stream, work_of(2, 1, y.storage(), y.dtype()), impl::any::reduce_into, op, x, y);
}

}  // namespace ringlet
