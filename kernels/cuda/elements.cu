// The launches of the hand-written kernels that compute element by element. What a thread does
// stands in kernels/grid/. Those of images are in images.cu, those that sum in reductions.cu: so a
// change of one family compiles one of three files, each of which takes nvcc about as long. A
// fifth of that goes into the headers of CUDA.
#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/views.h"
#include "kernels/grid/adamw.h"
#include "kernels/grid/batch_norm.h"
#include "kernels/grid/bias.h"
#include "kernels/grid/dropout.h"
#include "kernels/grid/elementwise.h"
#include "kernels/grid/ema.h"
#include "kernels/grid/loss_scale.h"
#include "kernels/grid/prelu.h"
#include "kernels/grid/row_sample.h"
#include "kernels/grid/row_updates.h"
#include "kernels/grid/rows.h"
#include "kernels/grid/running_statistics.h"
#include "kernels/grid/sgd.h"

namespace ringlet::impl {

KernelCode kernel_code() { return code_of_kernels(); }

void fill(CudaStream& stream, float value, const View& y) {
  grid::fill(CudaGrid(stream), value, y);
}

void accumulate(CudaStream& stream, const ConstView& x, const View& y) {
  grid::accumulate(CudaGrid(stream), x, y);
}

void add(CudaStream& stream, const ConstView& a, const ConstView& b, const View& y) {
  grid::add(CudaGrid(stream), a, b, y);
}

void scale(CudaStream& stream, float alpha, const ConstView& x, float beta, const View& y) {
  grid::scale(CudaGrid(stream), alpha, x, beta, y);
}

void blend_nothing(CudaStream& stream, float beta, const View& y) {
  if (beta == 0) {
    fill(stream, 0, y);
  } else if (beta != 1) {
    scale(stream, beta, y, 0, y);
  }
}

void relu_forward(CudaStream& stream, const ConstView& x, const View& y) {
  grid::relu_forward(CudaGrid(stream), x, y);
}

void relu_backward(CudaStream& stream, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx) {
  grid::relu_backward(CudaGrid(stream), y, dy, beta, dx);
}

void prelu_forward(CudaStream& stream, const ConstView& x, const ConstView& slope, const View& y) {
  require_gpu_layout("prelu_forward", x);
  grid::prelu_forward(CudaGrid(stream), x, slope, y);
}

void sigmoid_forward(CudaStream& stream, const ConstView& x, const View& y) {
  grid::sigmoid_forward(CudaGrid(stream), x, y);
}

void sigmoid_backward(CudaStream& stream, const ConstView& y, const ConstView& dy, float beta,
                      const View& dx) {
  grid::sigmoid_backward(CudaGrid(stream), y, dy, beta, dx);
}

void tanh_forward(CudaStream& stream, const ConstView& x, const View& y) {
  grid::tanh_forward(CudaGrid(stream), x, y);
}

void tanh_backward(CudaStream& stream, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx) {
  grid::tanh_backward(CudaGrid(stream), y, dy, beta, dx);
}

void bias_forward(CudaStream& stream, const ConstView& x, const ConstView& b, const View& y) {
  require_gpu_layout("bias_forward", x);
  grid::bias_forward(CudaGrid(stream), x, b, y);
}

void batch_norm_forward(CudaStream& stream, const BatchNorm& norm, const ConstView& residual,
                        const View& y) {
  require_gpu_layout("batch_norm_forward", y);
  grid::batch_norm_forward(CudaGrid(stream), norm, residual, y);
}

void batch_norm_backward_data(CudaStream& stream, const BatchNorm& norm, const ConstView& dy,
                              const ConstView& sums, float beta, const View& dx) {
  require_gpu_layout("batch_norm_backward_data", dx);
  grid::batch_norm_backward_data(CudaGrid(stream), norm, dy, sums, beta, dx);
}

void batch_norm_merge(CudaStream& stream, const ConstView& parts, std::int64_t pixels,
                      const View& moments) {
  grid::batch_norm_merge(CudaGrid(stream), parts, pixels, moments);
}

void running_statistics_track(CudaStream& stream, const RunningSpec& spec, const ConstView& moments,
                              const View& update) {
  grid::running_statistics_track(CudaGrid(stream), spec, moments, update);
}

void running_statistics_commit(CudaStream& stream, const ConstView& updates,
                               const ConstView& targets, const View& values, const View& counters,
                               const ConstView& scale) {
  grid::running_statistics_commit(CudaGrid(stream), updates, targets, values, counters, scale);
}

void loss_scale_begin(CudaStream& stream, const ConstView& state, const ConstView& newest,
                      const ConstView& table, const View& seed, const View& rates) {
  grid::loss_scale_begin(CudaGrid(stream), state, newest, table, seed, rates);
}

void loss_scale_end(CudaStream& stream, const LossScaleSpec& spec, const View& norm,
                    const View& state, const View& factor, const View& told) {
  grid::loss_scale_end(CudaGrid(stream), spec, norm, state, factor, told);
}

void cast(CudaStream& stream, const ConstView& x, const View& y) {
  grid::cast(CudaGrid(stream), x, y);
}

void cast_pair(CudaStream& stream, const ConstView& x, const View& y, const ConstView& second_x,
               const View& second_y) {
  grid::cast_pair(CudaGrid(stream), x, y, second_x, second_y);
}

void dropout_forward(CudaStream& stream, const DropoutSpec& spec, const ConstView& x,
                     const View& y) {
  require_gpu_layout("dropout_forward", x);
  grid::dropout_forward(CudaGrid(stream), spec, x, y);
}

void dropout_backward(CudaStream& stream, const DropoutSpec& spec, const ConstView& dy, float beta,
                      const View& dx) {
  require_gpu_layout("dropout_backward", dy);
  grid::dropout_backward(CudaGrid(stream), spec, dy, beta, dx);
}

void normalize_forward(CudaStream& stream, const Normalization& normalization, const ConstView& x,
                       const View& y) {
  require_gpu_layout("normalize_forward", y);
  grid::normalize_forward(CudaGrid(stream), normalization, x, y);
}

void sgd_update(CudaStream& stream, const SgdSpec& spec, const ConstView& rates, const View& value,
                const ConstView& gradient, const View& velocity, const ConstView& scale,
                const ConstView& decays) {
  grid::sgd_update(CudaGrid(stream), spec, rates, value, gradient, velocity, scale, decays);
}

void ema_update(CudaStream& stream, const ConstView& share, const ConstView& value,
                const View& mean, const ConstView& scale) {
  grid::ema_update(CudaGrid(stream), share, value, mean, scale);
}

void adamw_update(CudaStream& stream, const AdamWSpec& spec, const ConstView& rates,
                  const View& value, const ConstView& gradient, const View& mean,
                  const View& square, const ConstView& scale, const ConstView& decays) {
  grid::adamw_update(CudaGrid(stream), spec, rates, value, gradient, mean, square, scale, decays);
}

void sgd_update_rows(CudaStream& stream, const SgdSpec& spec, const ConstView& rates,
                     const ConstView& rows, const View& value, const ConstView& gradient,
                     const View& velocity, const ConstView& scale) {
  grid::sgd_update_rows(CudaGrid(stream), spec, rates, rows, value, gradient, velocity, scale);
}

void adamw_update_rows(CudaStream& stream, const AdamWSpec& spec, const ConstView& rates,
                       const ConstView& rows, const View& value, const ConstView& gradient,
                       const View& mean, const View& square, const ConstView& scale,
                       const ConstView& corrections) {
  grid::adamw_update_rows(CudaGrid(stream), spec, rates, rows, value, gradient, mean, square, scale,
                          corrections);
}

void adamw_count_rows(CudaStream& stream, const AdamWSpec& spec, const ConstView& lr,
                      const ConstView& rates, const ConstView& rows, const View& counts,
                      const View& corrections, const ConstView& scale) {
  grid::adamw_count_rows(CudaGrid(stream), spec, lr, rates, rows, counts, corrections, scale);
}

void find_rows(CudaStream& stream, const ConstView& rows, const ConstView& labels,
               std::int64_t first, std::int64_t at, bool joins, const View& columns) {
  grid::find_rows(CudaGrid(stream), rows, labels, first, at, joins, columns);
}

void rows_forward(CudaStream& stream, const ConstView& x, const View& rows) {
  require_gpu_layout("rows_forward", x);
  grid::rows_forward(CudaGrid(stream), x, rows);
}

void rows_backward(CudaStream& stream, const ConstView& drows, float beta, const View& dx) {
  require_gpu_layout("rows_backward", dx);
  grid::rows_backward(CudaGrid(stream), drows, beta, dx);
}

}  // namespace ringlet::impl
