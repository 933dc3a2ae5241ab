#include "kernels/pool2d.h"

#include "kernels/cpu/lanes/lanes.h"

namespace ringlet::lanes {

namespace {

PoolArguments arguments_of(const Pool2dSpec& spec, const Shape& x, const Shape& y, float beta) {
  PoolArguments a{};
  a.height = x[2];
  a.width = x[3];
  a.out_height = y[2];
  a.out_width = y[3];
  a.kernel_h = spec.kernel.h;
  a.kernel_w = spec.kernel.w;
  a.stride_h = spec.stride.h;
  a.stride_w = spec.stride.w;
  a.pad_h = spec.padding.h;
  a.pad_w = spec.padding.w;
  a.count_include_pad = spec.count_include_pad;
  a.beta = beta;
  return a;
}

/// Calls `kernel(arguments, plane)` for each channel of each block of `shape`, with the addresses
/// set: planes of `from` and `to` floats follow each other.
template <class Kernel>
void for_planes(CpuStream& stream, const PoolArguments& common, const Shape& shape,
                std::int64_t from_plane, std::int64_t to_plane, const Kernel& kernel) {
  const std::int64_t planes = lane_blocks(shape[0]) * shape[1];
  stream.parallel_for(planes, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      PoolArguments a = common;
      a.from += plane * from_plane;
      a.to += plane * to_plane;
      kernel(a, plane);
    }
  });
}

/// dx = beta * dx, then dx += dy at the winning pixels, which differ from lane to lane.
void scatter_to_winners(const PoolArguments& a, const std::int32_t* winner) {
  const std::int64_t count = a.height * a.width * kLanes;
  for (std::int64_t at = 0; at < count; ++at) a.to[at] = a.beta == 0 ? 0.0F : a.beta * a.to[at];
  const float* dy = a.from;
  for (std::int64_t pixel = 0; pixel < a.out_height * a.out_width; ++pixel) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      a.to[*winner++ * kLanes + lane] += *dy++;
    }
  }
}

std::int64_t plane_of(const Shape& shape) { return shape[2] * shape[3] * kLanes; }

}  // namespace

void avg_pool2d_forward(CpuStream& stream, const Pool2dSpec& spec, ConstView x, View y) {
  const KernelTable& kernels = kernels_for(stream.isa());
  PoolArguments common = arguments_of(spec, x.shape(), y.shape(), 0);
  common.from = x.f32();
  common.to = y.f32();
  for_planes(stream, common, x.shape(), plane_of(x.shape()), plane_of(y.shape()),
             [&](const PoolArguments& a, std::int64_t) { kernels.avg_pool_forward(a); });
}

void avg_pool2d_backward(CpuStream& stream, const Pool2dSpec& spec, ConstView dy, float beta,
                         View dx) {
  const KernelTable& kernels = kernels_for(stream.isa());
  PoolArguments common = arguments_of(spec, dx.shape(), dy.shape(), beta);
  common.from = dy.f32();
  common.to = dx.f32();
  for_planes(stream, common, dx.shape(), plane_of(dy.shape()), plane_of(dx.shape()),
             [&](const PoolArguments& a, std::int64_t) { kernels.avg_pool_backward(a); });
}

void max_pool2d_forward(CpuStream& stream, const Pool2dSpec& spec, ConstView x, View y,
                        View winner) {
  const KernelTable& kernels = kernels_for(stream.isa());
  PoolArguments common = arguments_of(spec, x.shape(), y.shape(), 0);
  common.from = x.f32();
  common.to = y.f32();
  auto* const winners = winner.as<std::int32_t>();
  const std::int64_t plane_size = plane_of(y.shape());
  for_planes(stream, common, x.shape(), plane_of(x.shape()), plane_size,
             [&](PoolArguments a, std::int64_t plane) {
               a.winner = winners + plane * plane_size;
               kernels.max_pool_forward(a);
             });
}

void max_pool2d_backward(CpuStream& stream, const Pool2dSpec& spec, ConstView dy, ConstView winner,
                         float beta, View dx) {
  PoolArguments common = arguments_of(spec, dx.shape(), dy.shape(), beta);
  common.from = dy.f32();
  common.to = dx.f32();
  const auto* const winners = winner.as<std::int32_t>();
  const std::int64_t plane_size = plane_of(dy.shape());
  for_planes(stream, common, dx.shape(), plane_size, plane_of(dx.shape()),
             [&](const PoolArguments& a, std::int64_t plane) {
               scatter_to_winners(a, winners + plane * plane_size);
             });
}

}  // namespace ringlet::lanes
