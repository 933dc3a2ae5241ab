#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/gather_batch.h"
#include "kernels/cuda/layouts.h"
#include "kernels/grid/gather_batch.h"

namespace ringlet::impl {

void gather_batch(CudaStream& stream, const GatherSpec& spec, const ConstView& images,
                  const ConstView& labels, const ConstView& position, const View& y,
                  const View& batch_labels) {
  require_nchw("gather_batch", y);
  CudaGrid launcher(stream);
  grid::gather_batch(launcher, spec, images, labels, position, y, batch_labels);
}

}  // namespace ringlet::impl
