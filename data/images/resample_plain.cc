#include "data/images/resample_loops.h"

namespace ringlet::data {

ResampleLoops best_resample_loops() { return resample_loops_portable(); }

}  // namespace ringlet::data
