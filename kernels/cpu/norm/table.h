// The loops over one channel of one sample (nchw) or of one block (lanes), each compiled for its
// instruction set. Plain data: this header is compiled with wider instructions than the rest of the
// program, so it may hold no function.
#pragma once

#include <cstdint>

#include "kernels/instruction_set.h"

namespace ringlet::impl {

/// Of some values: how many, their mean, and the sum of squared deviations from it.
struct RunningMoments {
  double count, mean, squares;
};

/// A channel's normalisation: y = act((x - mean) * gain + bias + residual).
struct ChannelNorm {
  float mean, gain, bias;
  bool relu;
};

/// Of a channel: sum dz, and sum dz * (x - mean).
struct ChannelSums {
  double dz, dz_deviation;
};

/// dx = beta * dx + a * dz + b + c * (x - mean).
struct ChannelGradient {
  float a, b, c, beta;
};

/// `n` floats side by side. `lanes`: of each sixteen, the first so many are samples; 16 in nchw.
struct NormPlane {
  std::int64_t n;
  int lanes;
  const float* x;
};

struct NormLoops {
  /// Adds the plane's values to `moments`.
  void (*moments)(const NormPlane& plane, RunningMoments& moments);
  /// `residual` may be null.
  void (*forward)(const NormPlane& plane, const ChannelNorm& norm, const float* residual, float* y);
  /// `y` and `dz` may be null. Gradients beyond the batch are zero already.
  void (*sums)(const NormPlane& plane, const ChannelNorm& norm, const float* y, const float* dy,
               float* dz, ChannelSums& sums);
  void (*data)(const NormPlane& plane, const ChannelNorm& norm, const ChannelGradient& gradient,
               const float* dy, float* dx);
};

NormLoops norm_loops_of(PortableSet);
NormLoops norm_loops_of(Avx2Set);
NormLoops norm_loops_of(Avx512Set);

}  // namespace ringlet::impl
