// The launches of the hand-written kernels that pool, gather or lay out images. What a thread
// does stands in kernels/grid/. The others are in elements.cu and reductions.cu.
#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/views.h"
#include "kernels/grid/concat.h"
#include "kernels/grid/gather_batch.h"
#include "kernels/grid/pool2d.h"
#include "kernels/grid/transpose.h"

namespace ringlet::impl {

void change_channels(CudaStream& stream, const ConstView& x, float beta, const View& y) {
  grid::change_channels(CudaGrid(stream), "change_channels", x, beta, y);
}

void concat_forward(CudaStream& stream, const ConstView& x, std::int64_t first, const View& y) {
  require_gpu_layout("concat_forward", y);
  grid::concat_forward(CudaGrid(stream), x, first, y);
}

void concat_backward(CudaStream& stream, const ConstView& dy, std::int64_t first, float beta,
                     const View& dx) {
  require_gpu_layout("concat_backward", dx);
  grid::concat_backward(CudaGrid(stream), dy, first, beta, dx);
}

void gather_batch(CudaStream& stream, const GatherSpec& spec, const ConstView& images,
                  const ConstView& labels, const ConstView& position, const View& y,
                  const View& batch_labels) {
  require_gpu_layout("gather_batch", y);
  grid::gather_batch(CudaGrid(stream), spec, images, labels, position, y, batch_labels);
}

void avg_pool2d_forward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y) {
  require_gpu_layout("avg_pool2d_forward", x);
  grid::avg_pool2d_forward(CudaGrid(stream), spec, x, y);
}

void avg_pool2d_backward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& dy,
                         float beta, const View& dx) {
  require_gpu_layout("avg_pool2d_backward", dy);
  grid::avg_pool2d_backward(CudaGrid(stream), spec, dy, beta, dx);
}

void max_pool2d_forward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y, const View& winner) {
  require_gpu_layout("max_pool2d_forward", x);
  grid::max_pool2d_forward(CudaGrid(stream), spec, x, y, winner);
}

void max_pool2d_backward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& dy,
                         const ConstView& winner, float beta, const View& dx) {
  require_gpu_layout("max_pool2d_backward", dy);
  grid::max_pool2d_backward(CudaGrid(stream), spec, dy, winner, beta, dx);
}

}  // namespace ringlet::impl
