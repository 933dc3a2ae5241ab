#include "bench/peers/floor_loops.h"

namespace ringlet::bench::peers {

FloorLoops floor_loops() { return portable_floor_loops(); }

}  // namespace ringlet::bench::peers
