// Reading a result, as whoever wanted it would: within the time that is taken, by this benchmark
// and by those of bench/peers. Up to half of what is measured is spent here, where the other core's
// cache holds what is read, so the loop must cost no more than the memory does: independent sums,
// in the widest vectors that the processor has.
#pragma once

#include <cstdint>
#include <vector>

namespace ringlet::bench {

/// The sum of the memory's 64-bit words and of the bytes that are left: depends on every byte, as
/// fast as memory can be read. Overflow is meant. Any address.
std::uint64_t read_all(const void* data, std::int64_t bytes);

/// One way to do so; the sum is the same by each.
struct ReadLoop {
  const char* name;  ///< avx512, avx2, portable
  std::uint64_t (*read)(const void* data, std::int64_t bytes);
};

/// Those that this processor runs, the widest first: what read_all() takes. "portable" is the last.
std::vector<ReadLoop> read_loops();

}  // namespace ringlet::bench
