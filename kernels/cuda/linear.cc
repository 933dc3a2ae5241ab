#include "kernels/linear.h"

#include "kernels/cuda/cublas_matmuls.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/views.h"
#include "kernels/error.h"

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
  stream.libraries().matmuls().run(linear_forward_matmul(x, w, y),
                                   bias.absent() ? nullptr : bias.f32(), activation, 0);
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

}  // namespace ringlet::impl
