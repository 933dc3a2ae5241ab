// What CUDA's kernels and libraries ask of a view: its layout, and how its memory is aligned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/error.h"
#include "kernels/tensor.h"

namespace ringlet {

/// The greatest power of two that divides the address, at most `limit` (a power of two as well).
/// Libraries choose wide loads by it. The limit keeps the number of different answers, and so of
/// plans, small.
inline std::int64_t alignment_of(const void* address, std::int64_t limit) {
  const auto number = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
  return number == 0 ? limit : std::min(limit, number & -number);
}

namespace impl {

/// Throws ContractError unless the view is row-major.
inline void require_nchw(const char* operation, const ConstView& view, At at = At::current()) {
  if (view.layout() == Layout::nchw) return;
  throw ContractError(std::string(operation) + ": " + describe(view) + ": the layout " +
                          name_of(view.layout()) + " is not for GPUs; use --layout nchw",
                      at);
}

}  // namespace impl

}  // namespace ringlet
