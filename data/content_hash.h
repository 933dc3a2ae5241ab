// Counts and hashes bytes in one pass over memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace ringlet::data {

/// How often each byte value occurs.
using Histogram = std::array<std::uint64_t, 256>;

/// A 64-bit hash of `bytes`, chained to `seed`. The same on all machines of one byte order. It is
/// stored in saved states, so it must never change. Not cryptographic.
std::uint64_t hash_bytes(std::span<const std::uint8_t> bytes, std::uint64_t seed);

/// Adds the bytes to `histogram` and returns hash_bytes(bytes, seed).
std::uint64_t hash_and_count(std::span<const std::uint8_t> bytes, std::uint64_t seed,
                             Histogram& histogram);

}  // namespace ringlet::data
