// The alignment of addresses, as libraries are told it so that they can choose wide loads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringlet {

/// The greatest power of two that divides the address, at most `limit` (a power of two as well).
/// The limit keeps the number of different answers, and so of plans, small.
inline std::int64_t alignment_of(const void* address, std::int64_t limit) {
  const auto number = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
  return number == 0 ? limit : std::min(limit, number & -number);
}

}  // namespace ringlet
