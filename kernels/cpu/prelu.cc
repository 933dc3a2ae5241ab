#include "kernels/prelu.h"

#include "kernels/cpu/loops.h"
#include "kernels/cpu/norm/prelu_table.h"
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

PReluLoops loops_for(const CpuStream& stream) {
  return for_instruction_set(stream.isa(), [](auto set) { return prelu_loops_of(set); });
}

}  // namespace

void prelu_forward(CpuStream& stream, const ConstView& x_view, const ConstView& slope_view,
                   const View& y_view) {
  const ChannelRuns runs(x_view);
  const float* x = x_view.f32();
  const float* slopes = slope_view.f32();
  float* y = y_view.f32();
  const bool shared = slope_view.count() == 1;
  const PReluLoops loops = loops_for(stream);
  for_each_item(stream, runs.blocks * runs.channels, [=](std::int64_t plane) {
    const float slope = slopes[shared ? 0 : plane % runs.channels];
    loops.forward(x + plane * runs.run, runs.run, slope, y + plane * runs.run);
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
  const PReluLoops loops = loops_for(stream);
  auto* const sums = stream.workspace_of<double>(runs.channels);
  for_each_item(stream, runs.channels, [=](std::int64_t c) {
    double sum = 0;  // of many samples
    for (std::int64_t block = 0; block < runs.blocks; ++block) {
      const std::int64_t first = (block * runs.channels + c) * runs.run;
      sum += loops.backward(x + first, dy + first, runs.run, slopes[shared ? 0 : c], beta,
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
