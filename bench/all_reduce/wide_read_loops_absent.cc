#include "bench/all_reduce/wide_read_loops.h"

namespace ringlet::train {

std::vector<ReadLoop> wide_read_loops() { return {}; }

}  // namespace ringlet::train
