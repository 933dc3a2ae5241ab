#include "kernels/conv2d.h"

#include <algorithm>

#include "kernels/cuda/conv2d_filter.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cudnn_convolutions.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/views.h"
#include "kernels/implementations.h"

namespace ringlet::impl {

namespace {

using cudnn_graph::Conv2dPass;

constexpr std::int64_t kWidestAlignment = 16;  // bytes of the widest load

CudnnConvolutions::Addresses addresses_of(const ConstView& x, const ConstView& w,
                                          const ConstView& y, const ConstView& bias) {
  // A variant pack has no type for memory that is only read; the key's pass says which is written.
  const auto address = [](const ConstView& view) { return const_cast<void*>(view.data()); };
  return {address(x), address(w), address(y), address(bias)};
}

std::int64_t common_alignment(const CudnnConvolutions::Addresses& addresses) {
  std::int64_t common = kWidestAlignment;
  for (const void* address : addresses) {
    common = std::min(common, alignment_of(address, kWidestAlignment));
  }
  return common;
}

CudnnConvolutions::Key make_key(Conv2dPass pass, const Conv2dSpec& spec, const ConstView& x,
                                const ConstView& w, const ConstView& y) {
  CudnnConvolutions::Key key;
  key.pass = pass;
  key.spec = spec;
  key.x = x.shape();
  key.w = w.shape();
  key.y = y.shape();
  key.dtype = x.dtype();
  key.layout = x.layout();
  key.filter = w.layout();
  return key;
}

}  // namespace

void conv2d_forward(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                    const ConstView& w, const ConstView& bias, Activation activation,
                    const View& y) {
  require_gpu_layout("conv2d_forward", x);
  if (y.count() == 0) return;
  CudnnConvolutions& convolutions = stream.libraries().convolutions();
  CudnnConvolutions::Addresses addresses = addresses_of(x, w, y, bias);
  CudnnConvolutions::Key key = make_key(Conv2dPass::forward, spec, x, w, y);
  key.bias = !bias.absent();
  key.activation = activation;
  key.alignment = common_alignment(addresses);
  // Without tensor cores cuDNN 9 has no engine for ReLU without a bias, and looking for one takes a
  // fifth of a second for each shape.
  const bool tensor_cores = stream.tf32() || is_narrow(key.dtype);
  const bool in_vain = activation == Activation::relu && !key.bias && !tensor_cores;
  const bool whole = stream.fuses() && !in_vain;
  if (whole && convolutions.try_run(key, addresses)) return;

  // No engine does all of it at once: what comes behind the product, or behind the bias, is ours.
  key.activation = Activation::none;
  const bool with_bias = stream.fuses() && activation == Activation::relu && key.bias;
  if (!with_bias || !convolutions.try_run(key, addresses)) {
    key.bias = false;
    addresses[3] = nullptr;
    convolutions.run(key, addresses);
    if (!bias.absent()) bias_forward(stream, y, bias, y);
  }
  if (activation == Activation::relu) relu_forward(stream, y, y);
}

void conv2d_backward_data(CudaStream& stream, const Conv2dSpec& spec, const ConstView& w,
                          const ConstView& dy, float beta, const View& dx) {
  require_gpu_layout("conv2d_backward_data", dx);
  if (dx.count() == 0) return;
  const CudnnConvolutions::Addresses addresses = addresses_of(dx, w, dy, {});
  CudnnConvolutions::Key key = make_key(Conv2dPass::backward_data, spec, dx, w, dy);
  key.beta = beta;
  key.alignment = common_alignment(addresses);
  stream.libraries().convolutions().run(key, addresses);
}

void conv2d_backward_filter(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                            const ConstView& dy, float beta, const View& dw) {
  require_gpu_layout("conv2d_backward_filter", x);
  if (x.shape()[0] == 0) return blend_nothing(stream, beta, dw);
  if (stream.sums_narrow() && sum_narrow_filter_gradient(stream, spec, x, dy, beta, dw)) return;
  const CudnnConvolutions::Addresses addresses = addresses_of(x, dw, dy, {});
  CudnnConvolutions::Key key = make_key(Conv2dPass::backward_filter, spec, x, dw, dy);
  key.beta = beta;
  const bool copies_factors = is_narrow(x.dtype());
  key.alignment = common_alignment(copies_factors ? addresses_of({}, dw, {}, {}) : addresses);
  CudnnConvolutions& convolutions = stream.libraries().convolutions();
  const bool sums_itself =
      stream.deterministic() && !convolutions.sums_filters_fast(key, addresses);
  if (sums_itself && sum_filter_gradient(stream, spec, x, dy, beta, dw)) return;
  convolutions.run(key, addresses);
}

}  // namespace ringlet::impl
