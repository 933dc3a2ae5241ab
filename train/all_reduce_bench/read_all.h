// Reading a result, as whoever wanted it would.
#pragma once

#include <cstdint>

namespace ringlet::train {

/// The sum of the memory's 64-bit words and of the bytes that are left: depends on every byte, as
/// fast as memory can be read. Overflow is meant.
std::uint64_t read_all(const void* data, std::int64_t bytes);

}  // namespace ringlet::train
