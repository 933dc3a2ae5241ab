#include "bench/all_reduce/wide_read_loops.h"

namespace ringlet::bench {

std::vector<ReadLoop> wide_read_loops() { return {}; }

}  // namespace ringlet::bench
