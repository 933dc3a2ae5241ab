// Batch normalisation of each channel (Ioffe and Szegedy, ICML 2015), with what mostly stands
// behind it: the addition of a residual branch, and a ReLU.
//
//   r[c] = 1 / sqrt(squares[c] / count + epsilon)
//   h[n,c,...] = (x[n,c,...] - mean[c]) * r[c]
//   y[n,c,...] = act( w[c] * h[n,c,...] + b[c] + residual[n,c,...] )
//
// Statistics are f32 [2, C]: the means, and the sums of squared deviations from them over `count`
// values. With the count they can be merged (moments of ranks), and a running variance is such a
// sum with count 1. Variances of a batch are biased here (divided by N H W), as PyTorch's are.
//
// Backward, with dz = dy * [y > 0] behind a ReLU, else dy, and n = count:
//
//   db = sum dz      dw = sum dz * h      dx = w r (dz - db / n - h * dw / n)      dresidual = dz
//
// Statistics that are constants (evaluation, frozen) leave dx = w r dz.
//
// No sum of squares is taken of the values themselves: a mean of 1e4 with a deviation of 1 is right
// to f32's last digits. All sums are in an order that the shapes alone decide.
//
// x, y, dy, dz, dx, residual [N, C] or [N, C, H, W] are activations (kernels/tensor.h) in one
// layout, whichever; w and b f32 [C], or absent for 1 and 0. In lanes, what lies beyond the
// batch enters no statistic, and dx is zero there. Statistics are of the values as they are stored.
// Where dz is stored on the way to dx, dx may be of dz before or after it is rounded.
#pragma once

#include "kernels/activation.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// A normalisation and what it is applied to.
struct BatchNorm {
  float epsilon = 1e-5F;
  Activation activation = Activation::none;
  double count = 1;  ///< values of a channel behind `statistics`
  ConstView x{};
  ConstView statistics{};  ///< f32 [2, C]
  ConstView weight{};
  ConstView bias{};
};

/// moments (f32 [2, C]) = means and sums of squared deviations of x. Of no values, both are 0.
void batch_norm_moments(Stream& stream, ConstView x, View moments);
/// y from norm.statistics. `residual` may be absent; y may be its memory, or x's.
void batch_norm_forward(Stream& stream, const BatchNorm& norm, ConstView residual, View y);
/// Both at once, `moments` being norm.statistics and norm.count the values of a channel of x: a
/// channel's second pass finds it in the cache.
void batch_norm_train_forward(Stream& stream, const BatchNorm& norm, View moments,
                              ConstView residual, View y);

/// sums (f32 [2, C]) = sum dz, sum dz * h. dz is written where it is not absent; it may be dy's
/// memory. `y` is read only where it is not absent: behind a ReLU with a residual, where x does not
/// say which units live.
void batch_norm_backward_sums(Stream& stream, const BatchNorm& norm, ConstView y, ConstView dy,
                              View dz, View sums);
/// dx = beta * dx + (gradient). Where `sums` is absent, the statistics are constants. dy is dz if
/// norm.activation is none; else the ReLU had no residual, and x says which units live.
void batch_norm_backward_data(Stream& stream, const BatchNorm& norm, ConstView dy, ConstView sums,
                              float beta, View dx);
/// Both at once, for dx of statistics of x itself.
void batch_norm_backward(Stream& stream, const BatchNorm& norm, ConstView y, ConstView dy, View dz,
                         View sums, float beta, View dx);

/// moments = those of all parts together (Chan, Golub and LeVeque, 1983), added in the order of the
/// parts. parts f32 [R, 2 C + 1]: means, squares, and the number of samples, each of `pixels`
/// values a channel. Parts without samples count for nothing.
void batch_norm_merge(Stream& stream, ConstView parts, std::int64_t pixels, View moments);

}  // namespace ringlet
