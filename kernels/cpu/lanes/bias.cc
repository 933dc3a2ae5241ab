#include "kernels/bias.h"

#include "kernels/cpu/lanes/lanes.h"

namespace ringlet::lanes {

namespace {

/// Floats of one channel of one block.
std::int64_t plane_of(const ConstView& x) {
  return x.shape().count_per_sample() / x.shape()[1] * kLanes;
}

}  // namespace

void bias_forward(CpuStream& stream, ConstView x, ConstView b, View y) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const std::int64_t channels = x.shape()[1];
  const std::int64_t plane = plane_of(x);
  const std::int64_t planes = lane_blocks(x.shape()[0]) * channels;
  stream.parallel_for(planes, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t at = begin; at < end; ++at) {
      kernels.add_number(x.f32() + at * plane, b.f32()[at % channels], y.f32() + at * plane, plane);
    }
  });
}

void bias_backward(CpuStream& stream, ConstView dy, float beta, View db) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const std::int64_t channels = dy.shape()[1];
  const std::int64_t plane = plane_of(dy);
  const std::int64_t blocks = lane_blocks(dy.shape()[0]);
  stream.parallel_for(channels, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t c = begin; c < end; ++c) {
      const float sum = kernels.sum(dy.f32() + c * plane, blocks, channels * plane, plane);
      db.f32()[c] = beta == 0 ? sum : beta * db.f32()[c] + sum;
    }
  });
}

}  // namespace ringlet::lanes
