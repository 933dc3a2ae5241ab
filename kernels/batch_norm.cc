#include "kernels/batch_norm.h"

#include "kernels/contract.h"
#include "kernels/cpu/in_f32.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_tensor(const char* operation, const ConstView& x) {
  require_activations(operation, x);
  require(x.shape().rank() == 2 || x.shape().rank() == 4, operation,
          "the tensor should be [N, C] or [N, C, H, W]");
}

void require_norm(const char* operation, const BatchNorm& norm) {
  require_tensor(operation, norm.x);
  const std::int64_t channels = norm.x.shape()[1];
  require_dense(operation, norm.statistics, Shape{2, channels});
  if (!norm.weight.absent()) require_dense(operation, norm.weight, Shape{channels});
  if (!norm.bias.absent()) require_dense(operation, norm.bias, Shape{channels});
  require(norm.count > 0, operation, "the statistics should be of at least one value");
}

/// `norm` of another view of its x.
BatchNorm with_x(BatchNorm norm, const ConstView& x) {
  norm.x = x;
  return norm;
}

/// What may be left out, and else is like x.
void require_like(const char* operation, const BatchNorm& norm, const ConstView& view) {
  if (!view.absent()) require_same_kind(operation, norm.x, view);
}

/// Whether devices read values like x as they are: the CPU's loops know f32 and bf16.
bool reads(const ConstView& x) { return x.dtype() != DType::f16; }

/// Calls implementation(stream, norm, others...) of the device.
template <class F, class... Others>
void dispatch_norm(Stream& stream, const Work& work, const F& implementation, const BatchNorm& norm,
                   const Others&... others) {
  dispatch(stream, work, [&](auto& concrete) {
    InF32 in_f32(concrete, reads(norm.x));
    implementation(concrete, with_x(norm, in_f32(norm.x)), in_f32(others)...);
  });
}

Work require_forward(const char* operation, const BatchNorm& norm, const ConstView& residual,
                     const ConstView& y) {
  require_norm(operation, norm);
  require_like(operation, norm, residual);
  require_same_kind(operation, norm.x, y);
  return {operation, 4 * static_cast<double>(norm.x.count()), total_bytes(norm.x, residual, y)};
}

Work require_sums(const char* operation, const BatchNorm& norm, const ConstView& y,
                  const ConstView& dy, const ConstView& dz, const ConstView& sums) {
  require_norm(operation, norm);
  require_like(operation, norm, y);
  require_like(operation, norm, dz);
  require_same_kind(operation, norm.x, dy);
  require_dense(operation, sums, norm.statistics.shape());
  return {operation, 4 * static_cast<double>(norm.x.count()), total_bytes(norm.x, y, dy, dz)};
}

Work require_data(const char* operation, const BatchNorm& norm, const ConstView& dy,
                  const ConstView& sums, const ConstView& dx) {
  require_norm(operation, norm);
  require_same_kind(operation, norm.x, dy);
  require_same_kind(operation, norm.x, dx);
  if (!sums.absent()) require_dense(operation, sums, norm.statistics.shape());
  return {operation, 5 * static_cast<double>(norm.x.count()), total_bytes(norm.x, dy, dx)};
}

}  // namespace

void batch_norm_moments(Stream& stream, ConstView x, View moments) {
  constexpr const char* kName = "batch_norm_moments";
  require_tensor(kName, x);
  require_dense(kName, moments, Shape{2, x.shape()[1]});
  const Work work{kName, 4 * static_cast<double>(x.count()), total_bytes(x)};
  dispatch(stream, work, [&](auto& concrete) {
    InF32 in_f32(concrete, reads(x));
    impl::batch_norm_moments(concrete, in_f32(x), moments);
  });
}

void batch_norm_forward(Stream& stream, const BatchNorm& norm, ConstView residual, View y) {
  const Work work = require_forward("batch_norm_forward", norm, residual, y);
  dispatch_norm(stream, work, impl::any::batch_norm_forward, norm, residual, y);
}

void batch_norm_train_forward(Stream& stream, const BatchNorm& norm, View moments,
                              ConstView residual, View y) {
  Work work = require_forward("batch_norm_train_forward", norm, residual, y);
  require(moments.address() == norm.statistics.address(), work.operation,
          "the moments should be where the norm's statistics are");
  work.flops *= 2;
  work.bytes += total_bytes(norm.x);
  dispatch_norm(stream, work, impl::any::batch_norm_train_forward, norm, moments, residual, y);
}

void batch_norm_backward_sums(Stream& stream, const BatchNorm& norm, ConstView y, ConstView dy,
                              View dz, View sums) {
  const Work work = require_sums("batch_norm_backward_sums", norm, y, dy, dz, sums);
  dispatch_norm(stream, work, impl::any::batch_norm_backward_sums, norm, y, dy, dz, sums);
}

void batch_norm_backward_data(Stream& stream, const BatchNorm& norm, ConstView dy, ConstView sums,
                              float beta, View dx) {
  const Work work = require_data("batch_norm_backward_data", norm, dy, sums, dx);
  dispatch_norm(stream, work, impl::any::batch_norm_backward_data, norm, dy, sums, beta, dx);
}

void batch_norm_backward(Stream& stream, const BatchNorm& norm, ConstView y, ConstView dy, View dz,
                         View sums, float beta, View dx) {
  Work work = require_sums("batch_norm_backward", norm, y, dy, dz, sums);
  const Work data = require_data(work.operation, norm, dy, sums, dx);
  work.flops += data.flops;
  work.bytes += data.bytes;
  dispatch_norm(stream, work, impl::any::batch_norm_backward, norm, y, dy, dz, sums, beta, dx);
}

void batch_norm_merge(Stream& stream, ConstView parts, std::int64_t pixels, View moments) {
  constexpr const char* kName = "batch_norm_merge";
  require(parts.shape().rank() == 2 && moments.shape().rank() == 2 && pixels > 0, kName,
          "the parts should be [R, 2 C + 1], the moments [2, C], of at least one pixel");
  require_dense(kName, moments, Shape{2, moments.shape()[1]});
  require_dense(kName, parts, Shape{parts.shape()[0], 2 * moments.shape()[1] + 1});
  const Work work{kName, 8 * static_cast<double>(parts.count()), total_bytes(parts, moments)};
  dispatch(stream, work, impl::any::batch_norm_merge, parts, pixels, moments);
}

}  // namespace ringlet
