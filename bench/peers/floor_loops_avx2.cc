#include "bench/peers/floor_loop_templates.h"

namespace ringlet::bench::peers {

FloorLoops avx2_floor_loops() { return LoopsOf<32>::all(); }

}  // namespace ringlet::bench::peers
