#include "bench/peers/floor_loop_templates.h"

namespace ringlet::bench::peers {

FloorLoops portable_floor_loops() { return LoopsOf<16>::all(); }

}  // namespace ringlet::bench::peers
