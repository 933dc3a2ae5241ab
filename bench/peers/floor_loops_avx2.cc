#include "bench/peers/floor_loop_templates.h"

namespace ringlet::peers {

FloorLoops avx2_floor_loops() { return LoopsOf<32>::all(); }

}  // namespace ringlet::peers
