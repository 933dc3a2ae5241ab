// Plain copies: the kernels of a GPU, thread by thread.
#include "kernels/concat.h"

#include "kernels/cpu/cpu_grid.h"
#include "kernels/cpu/loops.h"
#include "kernels/grid/concat.h"

namespace ringlet::impl {

void concat_forward(CpuStream& stream, const ConstView& x, std::int64_t first, const View& y) {
  (void)in_lanes(y);
  grid::concat_forward(CpuGrid(stream), x, first, y);
}

void concat_backward(CpuStream& stream, const ConstView& dy, std::int64_t first, float beta,
                     const View& dx) {
  (void)in_lanes(dx);
  grid::concat_backward(CpuGrid(stream), dy, first, beta, dx);
}

}  // namespace ringlet::impl
