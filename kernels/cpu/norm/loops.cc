// The loops of table.h, as templates over an instruction set (cpu/simd) and over what lies in
// memory: floats, or bf16 (Bf16Bits), of which all is computed in f32 and rounded once.
//
// Sums run in four vectors side by side, so that no addition waits for the one before it, over
// parts that fit into the first-level cache. A part's sums go on in double. A part's moments take
// two passes, the second from the cache, about a mean that the second corrects.
#include <cstdint>

#include "kernels/cpu/norm/sums.h"
#include "kernels/cpu/norm/table.h"
#include RINGLET_SIMD_HEADER

namespace ringlet::impl {

using simd::load;
using simd::number;
using simd::put;
using simd::store;

/// 1 in the lanes that are samples, 0 in the others.
template <class S>
struct LaneMask {
  explicit LaneMask(int lanes) {
    for (int lane = 0; lane < 16; ++lane) ones[lane] = lane < lanes ? 1.0F : 0.0F;
  }
  typename S::Vector at(std::int64_t i) const { return load<S>(ones + i % 16); }
  float ones[16];
};

template <class S>
void merge(RunningMoments& all, double count, double mean, double squares) {
  const double together = all.count + count, apart = mean - all.mean;
  all.mean += apart * count / together;
  all.squares += squares + apart * apart * all.count * count / together;
  all.count = together;
}

template <class S, class T, bool kMasked>
void part_moments(const T* x, std::int64_t n, int lanes, RunningMoments& moments) {
  const LaneMask<S> mask(lanes);
  Sums<S> sum, off, squares;
  const auto kept = [&](typename S::Vector v, std::int64_t i) __attribute__((always_inline)) {
    if constexpr (kMasked) v *= mask.at(i);
    return v;
  };
  for_all<S>(
      n,
      [&](std::int64_t i, int turn)
          __attribute__((always_inline)) { sum.vectors[turn] += kept(load<S>(x + i), i); },
      [&](std::int64_t i) { sum.rest += number<S>(x + i); });
  const double count = kMasked ? static_cast<double>(n / 16 * lanes) : static_cast<double>(n);
  const auto mean = static_cast<float>(sum.total() / count);
  for_all<S>(
      n,
      [&](std::int64_t i, int turn) __attribute__((always_inline)) {
        const typename S::Vector d = kept(load<S>(x + i) - mean, i);
        off.vectors[turn] += d;
        squares.vectors[turn] += d * d;
      },
      [&](std::int64_t i) {
        const float d = number<S>(x + i) - mean;
        off.rest += d;
        squares.rest += d * d;
      });
  const double correction = off.total() / count;
  merge<S>(moments, count, static_cast<double>(mean) + correction,
           squares.total() - correction * correction * count);
}

template <class S, class T>
void plane_moments(const NormPlane<T>& plane, RunningMoments& moments) {
  for (std::int64_t at = 0; at < plane.n; at += kNormPart) {
    const std::int64_t n = plane.n - at < kNormPart ? plane.n - at : kNormPart;
    if (plane.lanes == 16) {
      part_moments<S, T, false>(plane.x + at, n, plane.lanes, moments);
    } else {
      part_moments<S, T, true>(plane.x + at, n, plane.lanes, moments);
    }
  }
}

/// max(0, v); a NaN stays.
template <class S, class V>
[[gnu::always_inline]] inline V rectified(V v) {
  return v < V{} ? V{} : v;
}

/// g where v > 0, else 0.
template <class S, class V>
[[gnu::always_inline]] inline V where_positive(V v, V g) {
  return v > V{} ? g : V{};
}

template <class S, class T, bool kRelu, bool kResidual>
void forward_plane(const NormPlane<T>& plane, const ChannelNorm& norm, const T* residual, T* y) {
  const float mean = norm.mean, gain = norm.gain, bias = norm.bias;
  for_all<S>(
      plane.n,
      [&](std::int64_t i, int) __attribute__((always_inline)) {
        typename S::Vector v = (load<S>(plane.x + i) - mean) * gain + bias;
        if constexpr (kResidual) v += load<S>(residual + i);
        if constexpr (kRelu) v = rectified<S>(v);
        store<S>(y + i, v);
      },
      [&](std::int64_t i) {
        float v = (number<S>(plane.x + i) - mean) * gain + bias;
        if constexpr (kResidual) v += number<S>(residual + i);
        if constexpr (kRelu) v = rectified<S>(v);
        put<S>(y + i, v);
      });
}

template <class S, class T>
void plane_forward(const NormPlane<T>& plane, const ChannelNorm& norm, const T* residual, T* y) {
  if (norm.relu && residual != nullptr)
    return forward_plane<S, T, true, true>(plane, norm, residual, y);
  if (norm.relu) return forward_plane<S, T, true, false>(plane, norm, residual, y);
  if (residual != nullptr) return forward_plane<S, T, false, true>(plane, norm, residual, y);
  forward_plane<S, T, false, false>(plane, norm, residual, y);
}

/// Which units let their gradient through.
enum class Alive { all, by_x, by_y };

/// dz of one vector or number.
template <class S, Alive kAlive, class V>
[[gnu::always_inline]] inline V through(V dy, V deviation, V y, float gain, float bias) {
  if constexpr (kAlive == Alive::by_x) return where_positive<S>(deviation * gain + bias, dy);
  if constexpr (kAlive == Alive::by_y) return where_positive<S>(y, dy);
  return dy;
}

template <class S, class T, Alive kAlive>
void part_sums(const T* x, std::int64_t n, const ChannelNorm& norm, const T* y, const T* dy, T* dz,
               ChannelSums& sums) {
  const float mean = norm.mean, gain = norm.gain, bias = norm.bias;
  Sums<S> first, second;
  for_all<S>(
      n,
      [&](std::int64_t i, int turn) __attribute__((always_inline)) {
        using V = typename S::Vector;
        const V deviation = load<S>(x + i) - mean;
        const V of_y = kAlive == Alive::by_y ? load<S>(y + i) : V{};
        const V d = through<S, kAlive, V>(load<S>(dy + i), deviation, of_y, gain, bias);
        if (dz != nullptr) store<S>(dz + i, d);
        first.vectors[turn] += d;
        second.vectors[turn] += d * deviation;
      },
      [&](std::int64_t i) {
        const float deviation = number<S>(x + i) - mean;
        const float of_y = kAlive == Alive::by_y ? number<S>(y + i) : 0.0F;
        const float d = through<S, kAlive, float>(number<S>(dy + i), deviation, of_y, gain, bias);
        if (dz != nullptr) put<S>(dz + i, d);
        first.rest += d;
        second.rest += d * deviation;
      });
  sums.dz += first.total();
  sums.dz_deviation += second.total();
}

template <class S, class T>
void plane_sums(const NormPlane<T>& plane, const ChannelNorm& norm, const T* y, const T* dy, T* dz,
                ChannelSums& sums) {
  const auto run = !norm.relu     ? part_sums<S, T, Alive::all>
                   : y != nullptr ? part_sums<S, T, Alive::by_y>
                                  : part_sums<S, T, Alive::by_x>;
  for (std::int64_t at = 0; at < plane.n; at += kNormPart) {
    const std::int64_t n = plane.n - at < kNormPart ? plane.n - at : kNormPart;
    run(plane.x + at, n, norm, y == nullptr ? y : y + at, dy + at, dz == nullptr ? dz : dz + at,
        sums);
  }
}

template <class S, class T, Alive kAlive, bool kAdds, bool kMasked>
void data_plane(const NormPlane<T>& plane, const ChannelNorm& norm, const ChannelGradient& gradient,
                const T* dy, T* dx) {
  const float mean = norm.mean, gain = norm.gain, bias = norm.bias;
  const ChannelGradient g = gradient;
  const LaneMask<S> mask(plane.lanes);
  for_all<S>(
      plane.n,
      [&](std::int64_t i, int) __attribute__((always_inline)) {
        using V = typename S::Vector;
        const V deviation = load<S>(plane.x + i) - mean;
        V d = through<S, kAlive, V>(load<S>(dy + i), deviation, V{}, gain, bias);
        d = d * g.a + (deviation * g.c + g.b);
        if constexpr (kMasked) d *= mask.at(i);
        if constexpr (kAdds) d += load<S>(dx + i) * g.beta;
        store<S>(dx + i, d);
      },
      [&](std::int64_t i) {
        const float deviation = number<S>(plane.x + i) - mean;
        float d = through<S, kAlive, float>(number<S>(dy + i), deviation, 0.0F, gain, bias);
        d = d * g.a + (deviation * g.c + g.b);
        if constexpr (kAdds) d += number<S>(dx + i) * g.beta;
        put<S>(dx + i, d);
      });
}

template <class S, class T, Alive kAlive>
void data_with(const NormPlane<T>& plane, const ChannelNorm& norm, const ChannelGradient& gradient,
               const T* dy, T* dx) {
  const bool adds = gradient.beta != 0;
  const auto run =
      plane.lanes == 16
          ? (adds ? data_plane<S, T, kAlive, true, false> : data_plane<S, T, kAlive, false, false>)
          : (adds ? data_plane<S, T, kAlive, true, true> : data_plane<S, T, kAlive, false, true>);
  run(plane, norm, gradient, dy, dx);
}

template <class S, class T>
void plane_data(const NormPlane<T>& plane, const ChannelNorm& norm, const ChannelGradient& gradient,
                const T* dy, T* dx) {
  if (norm.relu) return data_with<S, T, Alive::by_x>(plane, norm, gradient, dy, dx);
  data_with<S, T, Alive::all>(plane, norm, gradient, dy, dx);
}

template <class S, class T>
NormLoops<T> norm_loops_of_type() {
  return {plane_moments<S, T>, plane_forward<S, T>, plane_sums<S, T>, plane_data<S, T>};
}

NormTable norm_table_of(RINGLET_SET) {
  return {norm_loops_of_type<RINGLET_SIMD, float>(), norm_loops_of_type<RINGLET_SIMD, Bf16Bits>()};
}

}  // namespace ringlet::impl
