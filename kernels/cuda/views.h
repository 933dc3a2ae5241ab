// What CUDA's kernels and libraries ask of a view and of memory, and what an empty batch leaves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "kernels/tensor.h"

namespace ringlet {

class CudaStream;

/// The greatest power of two that divides the address, at most `limit` (a power of two as well).
/// Libraries choose wide loads by it. The limit keeps the number of different answers, and so of
/// plans, small.
inline std::int64_t alignment_of(const void* address, std::int64_t limit) {
  const auto number = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
  return number == 0 ? limit : std::min(limit, number & -number);
}

/// Device::scratch_limit() of a GPU with so much memory free when it is opened. Who wants the same
/// bits gets the same engines on every GPU with 4 GiB free, whatever else lies there.
inline std::int64_t cuda_scratch_limit(std::int64_t free_bytes, bool deterministic) {
  return std::min(free_bytes / 16, std::int64_t{deterministic ? 256 : 4096} << 20);
}

namespace impl {

/// Throws ContractError unless the view is row-major.
inline void require_nchw(const char* operation, const ConstView& view, At at = At::current()) {
  if (view.layout() == Layout::nchw) return;
  throw ContractError(std::string(operation) + ": " + describe(view) + ": the layout " +
                          name_of(view.layout()) + " is not for GPUs; use --layout nchw",
                      at);
}

/// Throws ContractError unless the view is row-major or has its channels last.
inline void require_gpu_layout(const char* operation, const ConstView& view,
                               At at = At::current()) {
  if (view.layout() != Layout::nhwc) require_nchw(operation, view, at);
}

/// y = beta * y, the gradient of an empty batch: a sum of no terms. With beta = 0, y is not read.
void blend_nothing(CudaStream& stream, float beta, const View& y);

/// y = beta * y + x, one of them in nchw and one in nhwc; of the same floats. Filters
/// [O, C/groups, KH, KW] count as [N, C, H, W].
void change_channels(CudaStream& stream, const ConstView& x, float beta, const View& y);

/// y = x and second_y = second_x in one launch, as cast() has it; both of the same types.
void cast_pair(CudaStream& stream, const ConstView& x, const View& y, const ConstView& second_x,
               const View& second_y);

}  // namespace impl

}  // namespace ringlet
