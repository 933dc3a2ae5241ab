#include "kernels/prelu.h"

#include <algorithm>

#include "kernels/cpu/loops.h"
#include "kernels/elements.h"
#include "kernels/implementations.h"

namespace ringlet::impl {

namespace {

/// What lies one behind the other is of one channel: the pixels of a sample or, in lanes, of a
/// block of samples.
struct ChannelRuns {
  std::int64_t blocks, channels, run;

  explicit ChannelRuns(const ConstView& x) {
    const Shape& shape = x.shape();
    const bool lanes = in_lanes(x);
    blocks = lanes ? lane_blocks(shape[0]) : shape[0];
    channels = shape[1];
    run = (shape.rank() == 4 ? shape[2] * shape[3] : 1) * (lanes ? kLanes : 1);
  }
};

/// Writes dx where it is not null; the sum of what the run says of the slope.
float prelu_run_backward(const float* x, float slope, const float* dy, std::int64_t n, float beta,
                         float* dx) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += element::prelu_slope_gradient(x[i], dy[i]);
  if (dx == nullptr) return sum;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] = element::blend(beta, dx[i], element::prelu_gradient(x[i], slope, dy[i]));
  }
  return sum;
}

}  // namespace

void prelu_forward(CpuStream& stream, const ConstView& x_view, const ConstView& slope_view,
                   const View& y_view) {
  const ChannelRuns runs(x_view);
  const float* x = x_view.f32();
  const float* slopes = slope_view.f32();
  float* y = y_view.f32();
  const bool shared = slope_view.count() == 1;
  for_each_item(stream, runs.blocks * runs.channels, [=](std::int64_t plane) {
    const float slope = slopes[shared ? 0 : plane % runs.channels];
    const float* const from = x + plane * runs.run;
    float* const to = y + plane * runs.run;
#pragma omp simd
    for (std::int64_t i = 0; i < runs.run; ++i) to[i] = element::prelu(from[i], slope);
  });
}

void prelu_backward(CpuStream& stream, const ConstView& x_view, const ConstView& slope_view,
                    const ConstView& dy_view, float beta, const View& dx_view, float beta_slope,
                    const View& dslope_view) {
  const ChannelRuns runs(x_view);
  const float* x = x_view.f32();
  const float* slopes = slope_view.f32();
  const float* dy = dy_view.f32();
  float* dx = dx_view.absent() ? nullptr : dx_view.f32();
  const bool shared = slope_view.count() == 1;
  auto* const sums = stream.workspace_of<double>(runs.channels);
  for_each_item(stream, runs.channels, [=](std::int64_t c) {
    double sum = 0;  // of many samples
    for (std::int64_t block = 0; block < runs.blocks; ++block) {
      const std::int64_t first = (block * runs.channels + c) * runs.run;
      sum += prelu_run_backward(x + first, slopes[shared ? 0 : c], dy + first, runs.run, beta,
                                dx == nullptr ? nullptr : dx + first);
    }
    sums[c] = sum;
  });
  if (dslope_view.absent()) return;
  float* const dslope = dslope_view.f32();
  for (std::int64_t c = 1; shared && c < runs.channels; ++c) sums[0] += sums[c];
  for (std::int64_t c = 0; c < (shared ? 1 : runs.channels); ++c) {
    dslope[c] = element::blend(beta_slope, dslope[c], static_cast<float>(sums[c]));
  }
}

}  // namespace ringlet::impl
