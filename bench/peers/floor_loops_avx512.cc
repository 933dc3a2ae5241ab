#include "bench/peers/floor_loop_templates.h"

namespace ringlet::bench::peers {

FloorLoops avx512_floor_loops() { return LoopsOf<64>::all(); }

}  // namespace ringlet::bench::peers
