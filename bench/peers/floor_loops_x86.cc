#include "bench/peers/floor_loops.h"

namespace ringlet::bench::peers {

FloorLoops floor_loops() {
  if (__builtin_cpu_supports("avx512f")) return avx512_floor_loops();
  if (__builtin_cpu_supports("avx2")) return avx2_floor_loops();
  return portable_floor_loops();
}

}  // namespace ringlet::bench::peers
