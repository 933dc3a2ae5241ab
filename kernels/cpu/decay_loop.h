// Splits an update's loop where weight decay begins and ends.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/loops.h"
#include "kernels/decay_table.h"

namespace ringlet::impl {

/// One after another, the stretches of a thread's chunks [first, last) of n elements. All elements
/// of a stretch decay, or none does; without a table (decay_table.h) all do.
///
///   for (DecayRun run(table, n, first, last); run.next();) {
///     for (std::int64_t i = run.begin; i < run.end; ++i) ...
class DecayRun {
 public:
  DecayRun(const ConstView& table, std::int64_t n, std::int64_t first, std::int64_t last)
      : end(first * kChunk),
        last_(std::min(n, last * kChunk)),
        table_(table.absent() ? nullptr : table.as<std::uint8_t>()) {}

  bool next() {
    begin = end;
    end = last_;
    if (begin >= last_ || table_ == nullptr) return begin < last_;
    std::int64_t block = begin / kDecayBlock;
    decays = table_[block] != 0;
    while (block * kDecayBlock < last_ && (table_[block] != 0) == decays) ++block;
    end = std::min(last_, block * kDecayBlock);
    return true;
  }

  std::int64_t begin = 0;
  std::int64_t end;
  bool decays = true;

 private:
  std::int64_t last_;
  const std::uint8_t* table_;
};

}  // namespace ringlet::impl
