#include "bench/peers/floor_loops.h"

namespace ringlet::peers {

FloorLoops floor_loops() { return portable_floor_loops(); }

}  // namespace ringlet::peers
