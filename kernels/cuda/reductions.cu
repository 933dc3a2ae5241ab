// The launches of the hand-written kernels that sum or count. What a thread does stands in
// kernels/grid/; the other launches are in elements.cu and images.cu.
#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/views.h"
#include "kernels/grid/batch_norm.h"
#include "kernels/grid/bias.h"
#include "kernels/grid/classify.h"
#include "kernels/grid/l2_norm.h"
#include "kernels/grid/margin_softmax.h"
#include "kernels/grid/pointwise_loss.h"
#include "kernels/grid/prelu.h"
#include "kernels/grid/reduce.h"
#include "kernels/grid/row_sample.h"
#include "kernels/grid/softmax_cross_entropy.h"
#include "kernels/grid/softmax_shards.h"

namespace ringlet::impl {

/// The arrays may lie on other GPUs whose memory this one reads and writes in place.
void reduce(CudaStream& stream, ReduceOp op, std::span<const ConstView> xs,
            std::span<const View> ys, const ReduceOptions& options) {
  grid::reduce(CudaGrid(stream), op, xs, ys, options);
}

void reduce_into(CudaStream& stream, ReduceOp op, const ConstView& x, const View& y) {
  const ConstView xs[] = {y, x};
  reduce(stream, op, xs, {&y, 1}, {});
}

void bias_backward(CudaStream& stream, const ConstView& dy, float beta, const View& db) {
  require_gpu_layout("bias_backward", dy);
  grid::bias_backward(CudaGrid(stream), dy, beta, db);
}

void bias_relu_backward(CudaStream& stream, const ConstView& a, const ConstView& dy, const View& dz,
                        float beta, const View& db) {
  require_gpu_layout("bias_relu_backward", dy);
  grid::bias_relu_backward(CudaGrid(stream), a, dy, dz, beta, db);
}

void prelu_backward(CudaStream& stream, const ConstView& x, const ConstView& slope,
                    const ConstView& dy, float beta, const View& dx, float beta_slope,
                    const View& dslope) {
  require_gpu_layout("prelu_backward", x);
  grid::prelu_backward(CudaGrid(stream), x, slope, dy, beta, dx, beta_slope, dslope);
}

void bias_relu_avg_pool2d_backward(CudaStream& stream, const ConstView& dy, const View& a,
                                   float beta, const View& db) {
  grid::bias_relu_avg_pool2d_backward(CudaGrid(stream), dy, a, beta, db);
}

void batch_norm_moments(CudaStream& stream, const ConstView& x, const View& moments) {
  require_gpu_layout("batch_norm_moments", x);
  grid::batch_norm_moments(CudaGrid(stream), x, moments);
}

void batch_norm_train_forward(CudaStream& stream, const BatchNorm& norm, const View& moments,
                              const ConstView& residual, const View& y) {
  batch_norm_moments(stream, norm.x, moments);
  batch_norm_forward(stream, norm, residual, y);
}

void batch_norm_backward_sums(CudaStream& stream, const BatchNorm& norm, const ConstView& y,
                              const ConstView& dy, const View& dz, const View& sums) {
  require_gpu_layout("batch_norm_backward_sums", dy);
  grid::batch_norm_backward_sums(CudaGrid(stream), norm, y, dy, dz, sums);
}

void batch_norm_backward(CudaStream& stream, const BatchNorm& norm, const ConstView& y,
                         const ConstView& dy, const View& dz, const View& sums, float beta,
                         const View& dx) {
  batch_norm_backward_sums(stream, norm, y, dy, dz, sums);
  const auto [rest, through] = grid::behind_the_sums(norm, dy, dz);
  batch_norm_backward_data(stream, rest, through, sums, beta, dx);
}

void softmax_cross_entropy_forward(CudaStream& stream, const ConstView& logits,
                                   const ConstView& labels, const View& probabilities,
                                   const View& loss, float smoothing, const View& sum,
                                   const ClassWeights& weights) {
  require_nchw("softmax_cross_entropy_forward", logits);
  grid::softmax_cross_entropy_forward(CudaGrid(stream), logits, labels, probabilities, loss,
                                      smoothing, sum, weights);
}

void softmax_cross_entropy_backward(CudaStream& stream, const ConstView& probabilities,
                                    const ConstView& labels, const ConstView& dloss, float beta,
                                    const View& dlogits, float smoothing,
                                    const ClassWeights& weights) {
  require_nchw("softmax_cross_entropy_backward", probabilities);
  grid::softmax_cross_entropy_backward(CudaGrid(stream), probabilities, labels, dloss, beta,
                                       dlogits, smoothing, weights);
}

void pointwise_loss_forward(CudaStream& stream, PointwiseLoss kind, const ConstView& predictions,
                            const ConstView& targets, const View& loss, const View& sum) {
  require_gpu_layout("pointwise_loss_forward", predictions);
  grid::pointwise_loss_forward(CudaGrid(stream), kind, predictions, targets, loss, sum);
}

void pointwise_loss_backward(CudaStream& stream, PointwiseLoss kind, const ConstView& predictions,
                             const ConstView& targets, const ConstView& dloss, float beta,
                             const View& dpredictions) {
  require_gpu_layout("pointwise_loss_backward", predictions);
  grid::pointwise_loss_backward(CudaGrid(stream), kind, predictions, targets, dloss, beta,
                                dpredictions);
}

void l2_norm(CudaStream& stream, const ConstView& x, const View& norm, const NormLimit& limit) {
  grid::l2_norm(CudaGrid(stream), x, norm, limit);
}

void square_sum(CudaStream& stream, const ConstView& x, const View& sum, double weight) {
  grid::square_sum(CudaGrid(stream), x, sum, weight);
}

void square_sums(CudaStream& stream, const ConstView& x, const ConstView& ranges,
                 std::int64_t longest, const View& sums) {
  grid::square_sums(CudaGrid(stream), x, ranges, longest, sums);
}

void norm_of_sums(CudaStream& stream, const ConstView& sums, const View& norm,
                  const NormLimit& limit) {
  grid::norm_of_sums(CudaGrid(stream), sums, norm, limit);
}

void softmax_shard_forward(CudaStream& stream, const ConstView& logits, const ConstView& labels,
                           std::int64_t first, const View& part) {
  grid::softmax_shard_forward(CudaGrid(stream), logits, labels, first, part);
}

void softmax_shards_merge(CudaStream& stream, const ConstView& parts, const View& merged) {
  grid::softmax_shards_merge(CudaGrid(stream), parts, merged);
}

void softmax_shards_loss(CudaStream& stream, const ConstView& merged, const View& loss,
                         const View& sum) {
  grid::softmax_shards_loss(CudaGrid(stream), merged, loss, sum);
}

void softmax_shard_backward(CudaStream& stream, const ConstView& logits, const ConstView& labels,
                            std::int64_t first, const ConstView& merged, const ConstView& dloss,
                            float beta, const View& dlogits) {
  grid::softmax_shard_backward(CudaGrid(stream), logits, labels, first, merged, dloss, beta,
                               dlogits);
}

void argmax_count(CudaStream& stream, const ConstView& logits, const ConstView& labels,
                  const View& count) {
  require_nchw("argmax_count", logits);
  grid::argmax_count(CudaGrid(stream), logits, labels, count);
}

void count_nonfinite(CudaStream& stream, const ConstView& x, const View& count) {
  grid::count_nonfinite(CudaGrid(stream), x, count);
}

void inverse_norms(CudaStream& stream, const ConstView& x, const View& inverse) {
  grid::inverse_norms(CudaGrid(stream), x, inverse);
}

void margin_targets(CudaStream& stream, const MarginSpec& spec, const ConstView& x,
                    const ConstView& w, const ConstView& labels, std::int64_t first,
                    const ConstView& epochs, const View& targets, const View& cosines) {
  grid::margin_targets(CudaGrid(stream), spec, x, w, labels, first, epochs, targets, cosines);
}

void margin_angles(CudaStream& stream, const MarginSpec& spec, const ConstView& cosines,
                   const ConstView& parts, std::int64_t begin, std::int64_t end, const View& sums) {
  grid::margin_angles(CudaGrid(stream), spec, cosines, parts, begin, end, sums);
}

void margin_softmax_part(CudaStream& stream, const MarginSpec& spec, const ConstView& products,
                         const ConstView& x_inverse, const ConstView& w_inverse,
                         const ConstView& labels, std::int64_t first, const ConstView& targets,
                         bool joins, const View& part) {
  grid::margin_softmax_part(CudaGrid(stream), spec, products, x_inverse, w_inverse, labels, first,
                            targets, joins, part);
}

void margin_softmax_gradient(CudaStream& stream, const MarginSpec& spec, const ConstView& x_inverse,
                             const ConstView& w_inverse, const ConstView& labels,
                             std::int64_t first, const ConstView& targets, const ConstView& merged,
                             const ConstView& dloss, const View& products) {
  grid::margin_softmax_gradient(CudaGrid(stream), spec, x_inverse, w_inverse, labels, first,
                                targets, merged, dloss, products);
}

void gather_rows(CudaStream& stream, const ConstView& matrix, const ConstView& rows,
                 const View& gathered, const View& inverse) {
  grid::gather_rows(CudaGrid(stream), matrix, rows, gathered, inverse);
}

void project_rows(CudaStream& stream, const ConstView& x, const ConstView& inverse, const View& g) {
  grid::project_rows(CudaGrid(stream), x, inverse, g);
}

void softmax_shards_right(CudaStream& stream, const ConstView& parts, const ConstView& merged,
                          const ConstView& x_inverse, std::int64_t begin, std::int64_t end,
                          const View& right) {
  grid::softmax_shards_right(CudaGrid(stream), parts, merged, x_inverse, begin, end, right);
}

}  // namespace ringlet::impl
