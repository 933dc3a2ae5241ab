#include "kernels/linear.h"

#include "base/error.h"
#include "kernels/cuda/cublas_matmuls.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/views.h"
#include "kernels/implementations.h"

namespace ringlet::impl {

namespace {

/// A gradient, which may be a sum of no terms at all: that of an empty batch.
void run_backward(CudaStream& stream, const Matmul& matmul, float beta, const View& gradient) {
  if (gradient.count() == 0) return;
  if (matmul.size.k == 0) return blend_nothing(stream, beta, gradient);
  stream.libraries().matmuls().run(matmul, nullptr, Activation::none, beta);
}

}  // namespace

void linear_forward(CudaStream& stream, const ConstView& x, const ConstView& w,
                    const ConstView& bias, Activation activation, const View& y) {
  require_nchw("linear_forward", x);
  if (y.count() == 0) return;
  require(x.shape()[1] > 0, "linear_forward", "there should be at least one input");
  CublasMatmuls& matmuls = stream.libraries().matmuls();
  const Matmul matmul = linear_forward_matmul(x, w, y);
  if (stream.fuses()) {
    return matmuls.run(matmul, bias.absent() ? nullptr : bias.f32(), activation, 0);
  }
  matmuls.run(matmul, nullptr, Activation::none, 0);
  if (!bias.absent()) bias_forward(stream, y, bias, y);
  if (activation == Activation::relu) relu_forward(stream, y, y);
}

void linear_backward_data(CudaStream& stream, const ConstView& w, const ConstView& dy, float beta,
                          const View& dx) {
  require_nchw("linear_backward_data", dx);
  run_backward(stream, linear_backward_data_matmul(w, dy, dx), beta, dx);
}

void linear_backward_weight(CudaStream& stream, const ConstView& x, const ConstView& dy, float beta,
                            const View& dw) {
  require_nchw("linear_backward_weight", x);
  run_backward(stream, linear_backward_weight_matmul(x, dy, dw), beta, dw);
}

void linear_backward_weight_bias(CudaStream& stream, const ConstView& x, const ConstView& dy,
                                 float beta_dw, const View& dw, float beta_db, const View& db) {
  require_nchw("linear_backward_weight_bias", x);
  // The library overwrites db. How it adds where it splits the sum over k is not documented: who
  // wants the same bits in every run gets our sum, which is in double and in a fixed order.
  const bool may_be_asked = stream.fuses() && beta_db == 0 && !stream.deterministic();
  const bool is_product = dw.count() > 0 && x.shape()[0] > 0;
  if (may_be_asked && is_product &&
      stream.libraries().matmuls().try_run_with_bias_gradient(
          linear_backward_weight_matmul(x, dy, dw), beta_dw, db.f32())) {
    return;
  }
  bias_backward(stream, dy, beta_db, db);
  linear_backward_weight(stream, x, dy, beta_dw, dw);
}

}  // namespace ringlet::impl
