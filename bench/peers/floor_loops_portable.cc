#include "bench/peers/floor_loop_templates.h"

namespace ringlet::peers {

FloorLoops portable_floor_loops() { return LoopsOf<16>::all(); }

}  // namespace ringlet::peers
