#include "train/all_reduce_bench/wide_read_loops.h"

namespace ringlet::train {

std::vector<ReadLoop> wide_read_loops() { return {}; }

}  // namespace ringlet::train
