// A fast 64-bit hash of memory, to tell whether replicas hold the same bytes. Not cryptographic.
#pragma once

#include <cstdint>

namespace ringlet::comm {

/// Depends on every bit and on the length; changing any one 64-bit word always changes it.
std::uint64_t hash_bytes(const void* data, std::int64_t bytes);

}  // namespace ringlet::comm
