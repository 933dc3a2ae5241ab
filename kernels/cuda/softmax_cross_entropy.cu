#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/layouts.h"
#include "kernels/cuda/softmax_cross_entropy.h"
#include "kernels/grid/softmax_cross_entropy.h"

namespace ringlet::impl {

void softmax_cross_entropy_forward(CudaStream& stream, const ConstView& logits,
                                   const ConstView& labels, const View& probabilities,
                                   const View& loss) {
  require_nchw("softmax_cross_entropy_forward", logits);
  CudaGrid launcher(stream);
  grid::softmax_cross_entropy_forward(launcher, logits, labels, probabilities, loss);
}

void softmax_cross_entropy_backward(CudaStream& stream, const ConstView& probabilities,
                                    const ConstView& labels, const ConstView& dloss, float beta,
                                    const View& dlogits) {
  require_nchw("softmax_cross_entropy_backward", probabilities);
  CudaGrid launcher(stream);
  grid::softmax_cross_entropy_backward(launcher, probabilities, labels, dloss, beta, dlogits);
}

}  // namespace ringlet::impl
