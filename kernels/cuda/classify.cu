#include "kernels/cuda/classify.h"
#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/layouts.h"
#include "kernels/grid/classify.h"

namespace ringlet::impl {

void argmax_count(CudaStream& stream, const ConstView& logits, const ConstView& labels,
                  const View& count) {
  require_nchw("argmax_count", logits);
  CudaGrid launcher(stream);
  grid::argmax_count(launcher, logits, labels, count);
}

void count_nonfinite(CudaStream& stream, const ConstView& x, const View& count) {
  CudaGrid launcher(stream);
  grid::count_nonfinite(launcher, x, count);
}

}  // namespace ringlet::impl
