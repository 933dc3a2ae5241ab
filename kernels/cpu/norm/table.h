// The loops over one channel of one sample (nchw) or of one block (lanes), each compiled for its
// instruction set. Plain data: this header is compiled with wider instructions than the rest of the
// program, so it may hold no function.
#pragma once

#include <cstdint>

#include "base/instruction_set.h"

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

using Bf16Bits = std::uint16_t;

/// `n` numbers side by side, float or Bf16Bits. `lanes`: of each sixteen, the first so many are
/// samples; 16 in nchw.
template <class T>
struct NormPlane {
  std::int64_t n;
  int lanes;
  const T* x;
};

template <class T>
struct NormLoops {
  /// Adds the plane's values to `moments`.
  void (*moments)(const NormPlane<T>& plane, RunningMoments& moments);
  /// `residual` may be null.
  void (*forward)(const NormPlane<T>& plane, const ChannelNorm& norm, const T* residual, T* y);
  /// `y` and `dz` may be null. Gradients beyond the batch are zero already.
  void (*sums)(const NormPlane<T>& plane, const ChannelNorm& norm, const T* y, const T* dy, T* dz,
               ChannelSums& sums);
  void (*data)(const NormPlane<T>& plane, const ChannelNorm& norm, const ChannelGradient& gradient,
               const T* dy, T* dx);
};

struct NormTable {
  NormLoops<float> f32;
  NormLoops<Bf16Bits> bf16;
};

NormTable norm_table_of(PortableSet);
NormTable norm_table_of(NeonSet);
NormTable norm_table_of(Avx2Set);
NormTable norm_table_of(Avx512Set);

}  // namespace ringlet::impl
