// The loops of read_all() that only some processors run.
#pragma once

#include <vector>

#include "bench/all_reduce/read_all.h"

namespace ringlet::bench {

/// The loops that this processor runs, the widest first. Exists only where kX86.
std::vector<ReadLoop> wide_read_loops();

/// The loop that every processor runs, which reads what is left of a vector too.
std::uint64_t read_portably(const void* data, std::int64_t bytes);

}  // namespace ringlet::bench
