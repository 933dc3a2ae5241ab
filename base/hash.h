// A fast 64-bit hash of memory: to tell whether two hold the same bytes. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringlet {

/// Chained to `seed`. Depends on every bit and on the length: changing any one 64-bit word always
/// changes it. The same on all machines of one byte order. It is stored in saved states, so it must
/// never change.
std::uint64_t hash_bytes(std::span<const std::uint8_t> bytes, std::uint64_t seed = 0);

inline std::uint64_t hash_bytes(const void* data, std::size_t bytes, std::uint64_t seed = 0) {
  return hash_bytes(std::span(static_cast<const std::uint8_t*>(data), bytes), seed);
}

}  // namespace ringlet
