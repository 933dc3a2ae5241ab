#include "kernels/dropout.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_dropout(const char* operation, const DropoutSpec& spec, const ConstView& in,
                     const ConstView& out) {
  require_activations(operation, in);
  require_same_kind(operation, in, out);
  require(in.shape().rank() >= 1, operation, "the tensor should be [N, ...]");
  require(spec.probability >= 0.0F && spec.probability < 1.0F, operation,
          "the probability should be in [0, 1)");
  require(spec.first_sample >= 0, operation, "the first sample should be at least 0");
  if (!spec.position.absent()) require_position(operation, spec.position);
}

}  // namespace

void dropout_forward(Stream& stream, const DropoutSpec& spec, ConstView x, View y) {
  constexpr const char* kName = "dropout_forward";
  require_dropout(kName, spec, x, y);
  const Work work{kName, static_cast<double>(x.count()), total_bytes(x, y)};
  dispatch_in_f32(stream, work, impl::any::dropout_forward, spec, x, y);
}

void dropout_backward(Stream& stream, const DropoutSpec& spec, ConstView dy, float beta, View dx) {
  constexpr const char* kName = "dropout_backward";
  require_dropout(kName, spec, dy, dx);
  const Work work{kName, static_cast<double>(dy.count()), total_bytes(dy, dx)};
  dispatch_in_f32(stream, work, impl::any::dropout_backward, spec, dy, beta, dx);
}

}  // namespace ringlet
