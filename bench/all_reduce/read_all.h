// Reads a whole result, as a program that wanted it would. This is inside the timed part, here and
// in bench/peers. Up to half of the time goes into it, where what is read lies in another core's
// cache. So the loop must cost no more than the memory does: independent sums, in the widest
// vectors that the processor has.
#pragma once

#include <cstdint>
#include <vector>

#include "base/instruction_set.h"

namespace ringlet::bench {

/// The sum of the memory's 64-bit words and of the bytes that are left: depends on every byte, as
/// fast as memory can be read. Overflow is meant. Any address.
std::uint64_t read_all(const void* data, std::int64_t bytes);

/// One way to do so; the sum is the same by each.
struct ReadLoop {
  const char* name;  ///< avx512, avx2, portable
  std::uint64_t (*read)(const void* data, std::int64_t bytes);
};

/// The loops that this processor runs, the widest first; read_all() takes that. "portable" is the
/// last.
std::vector<ReadLoop> read_loops();

/// That of an instruction set.
ReadLoop read_loop_of(PortableSet);
ReadLoop read_loop_of(NeonSet);
ReadLoop read_loop_of(Avx2Set);
ReadLoop read_loop_of(Avx512Set);

}  // namespace ringlet::bench
