// Splits an update's loop over threads, and where weight decay begins and ends.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/loops.h"
#include "kernels/decay_table.h"

namespace ringlet::impl {

/// Calls f(begin, end, decay) on ranges that cover [0, n), in any order and on several threads. All
/// elements of a range decay, or none does; without a table (decay_table.h) all do.
template <class F>
void for_each_decay(CpuStream& stream, std::int64_t n, const ConstView& table, F f) {
  const std::uint8_t* decays = table.absent() ? nullptr : table.as<std::uint8_t>();
  stream.parallel_for((n + kChunk - 1) / kChunk, [=](std::int64_t first, std::int64_t last, int) {
    const std::int64_t end = std::min(n, last * kChunk);
    for (std::int64_t begin = first * kChunk, stop = end; begin < end; begin = stop, stop = end) {
      bool decay = true;
      if (decays != nullptr) {
        std::int64_t block = begin / kDecayBlock;
        decay = decays[block] != 0;
        while (block * kDecayBlock < end && (decays[block] != 0) == decay) ++block;
        stop = std::min(end, block * kDecayBlock);
      }
      f(begin, stop, decay);  // the only call: of two, one would not become a vector loop
    }
  });
}

}  // namespace ringlet::impl
