// The launches of the hand-written kernels whose threads each make a result of their own. What a
// thread does stands in kernels/grid/. Those that sum are in reductions.cu. Most of the time to
// compile a .cu file goes into CUDA's headers, so there are two files of about equal cost.
#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/views.h"
#include "kernels/grid/bias.h"
#include "kernels/grid/dropout.h"
#include "kernels/grid/elementwise.h"
#include "kernels/grid/gather_batch.h"
#include "kernels/grid/pool2d.h"
#include "kernels/grid/sgd.h"

namespace ringlet::impl {

void fill(CudaStream& stream, float value, const View& y) {
  CudaGrid launcher(stream);
  grid::fill(launcher, value, y);
}

void accumulate(CudaStream& stream, const ConstView& x, const View& y) {
  CudaGrid launcher(stream);
  grid::accumulate(launcher, x, y);
}

void add(CudaStream& stream, const ConstView& a, const ConstView& b, const View& y) {
  CudaGrid launcher(stream);
  grid::add(launcher, a, b, y);
}

void scale(CudaStream& stream, float alpha, const ConstView& x, float beta, const View& y) {
  CudaGrid launcher(stream);
  grid::scale(launcher, alpha, x, beta, y);
}

void relu_forward(CudaStream& stream, const ConstView& x, const View& y) {
  CudaGrid launcher(stream);
  grid::relu_forward(launcher, x, y);
}

void relu_backward(CudaStream& stream, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx) {
  CudaGrid launcher(stream);
  grid::relu_backward(launcher, y, dy, beta, dx);
}

void bias_forward(CudaStream& stream, const ConstView& x, const ConstView& b, const View& y) {
  require_nchw("bias_forward", x);
  CudaGrid launcher(stream);
  grid::bias_forward(launcher, x, b, y);
}

void cast(CudaStream& stream, const ConstView& x, const View& y) {
  CudaGrid launcher(stream);
  grid::cast(launcher, x, y);
}

void dropout_forward(CudaStream& stream, const DropoutSpec& spec, const ConstView& x,
                     const View& y) {
  require_nchw("dropout_forward", x);
  CudaGrid launcher(stream);
  grid::dropout_forward(launcher, spec, x, y);
}

void dropout_backward(CudaStream& stream, const DropoutSpec& spec, const ConstView& dy, float beta,
                      const View& dx) {
  require_nchw("dropout_backward", dy);
  CudaGrid launcher(stream);
  grid::dropout_backward(launcher, spec, dy, beta, dx);
}

void gather_batch(CudaStream& stream, const GatherSpec& spec, const ConstView& images,
                  const ConstView& labels, const ConstView& position, const View& y,
                  const View& batch_labels) {
  require_nchw("gather_batch", y);
  CudaGrid launcher(stream);
  grid::gather_batch(launcher, spec, images, labels, position, y, batch_labels);
}

void normalize_forward(CudaStream& stream, const Normalization& normalization, const ConstView& x,
                       const View& y) {
  require_nchw("normalize_forward", y);
  CudaGrid launcher(stream);
  grid::normalize_forward(launcher, normalization, x, y);
}

void avg_pool2d_forward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y) {
  require_nchw("avg_pool2d_forward", x);
  CudaGrid launcher(stream);
  grid::avg_pool2d_forward(launcher, spec, x, y);
}

void avg_pool2d_backward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& dy,
                         float beta, const View& dx) {
  require_nchw("avg_pool2d_backward", dy);
  CudaGrid launcher(stream);
  grid::avg_pool2d_backward(launcher, spec, dy, beta, dx);
}

void max_pool2d_forward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y, const View& winner) {
  require_nchw("max_pool2d_forward", x);
  CudaGrid launcher(stream);
  grid::max_pool2d_forward(launcher, spec, x, y, winner);
}

void max_pool2d_backward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& dy,
                         const ConstView& winner, float beta, const View& dx) {
  require_nchw("max_pool2d_backward", dy);
  CudaGrid launcher(stream);
  grid::max_pool2d_backward(launcher, spec, dy, winner, beta, dx);
}

void sgd_update(CudaStream& stream, const SgdSpec& spec, const ConstView& rates, const View& value,
                const ConstView& gradient, const View& velocity) {
  CudaGrid launcher(stream);
  grid::sgd_update(launcher, spec, rates, value, gradient, velocity);
}

}  // namespace ringlet::impl
