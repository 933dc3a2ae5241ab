// Filter gradient: a tile of outputs x taps, each a vector of sums over one lane's samples, stays
// in registers while all blocks and pixels go by; the lanes are added up once, at the end. A step
// of the 5 x 5 tile (AVX-512) costs 10 loads for 25 multiply-adds.
#pragma once

#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/tile.h"

namespace ringlet::lanes {

template <class S, int kOutputs, int kTaps>
struct FilterTile {
  typename S::Vector sum[kOutputs][kTaps];

  [[gnu::always_inline]] void clear() {
    unroll<kOutputs>([&](auto o) __attribute__((always_inline)) {
      unroll<kTaps>([&](auto t)
                        __attribute__((always_inline)) { sum[o][t] = typename S::Vector{}; });
    });
  }

  /// sum[o][t] += dy(o) * x[t]
  template <class Gradient>
  [[gnu::always_inline]] void multiply_add(const float* const (&x)[kTaps], std::int64_t offset,
                                           const Gradient& dy) {
    typename S::Vector in[kTaps];
    unroll<kTaps>([&](auto t) __attribute__((always_inline)) { in[t] = load<S>(x[t] + offset); });
    unroll<kOutputs>([&](auto o) __attribute__((always_inline)) {
      const typename S::Vector d = dy(o);
      unroll<kTaps>([&](auto t) __attribute__((always_inline)) { sum[o][t] += d * in[t]; });
    });
  }

  [[gnu::always_inline]] void finish(const FilterArguments& a) {
    unroll<kOutputs>([&](auto o) __attribute__((always_inline)) {
      unroll<kTaps>([&](auto t) __attribute__((always_inline)) {
        float* const dw = a.dw + o * a.dw_output + t;
        const float total = S::sum(sum[o][t]);
        *dw = a.beta == 0 ? total : a.beta * *dw + total;
      });
    });
  }
};

template <class S, int kOutputs, int kTaps>
void filter(const FilterArguments& arguments) {
  const FilterArguments a = arguments;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): clear() writes all of it
  FilterTile<S, kOutputs, kTaps> tile;
  tile.clear();
  const float* x[kTaps];
  for (std::int64_t block = 0; block < a.blocks; ++block) {
    for (std::int64_t lane = 0; lane < 16; lane += S::kWidth) {
      unroll<kTaps>([&](auto t) __attribute__((always_inline)) {
        x[t] = a.x + block * a.x_block + lane + a.taps[t];
      });
      const float* dy = a.dy + block * a.dy_block + lane;
      for (std::int64_t i = 0; i < a.height; ++i) {
        std::int64_t offset = i * a.x_row;
        for (std::int64_t j = 0; j < a.width; ++j, offset += a.x_col, dy += 16) {
          tile.multiply_add(
              x, offset, [&](auto o) __attribute__((always_inline)) {
                return load<S>(dy + o * a.dy_channel);
              });
        }
      }
    }
  }
  tile.finish(a);
}

}  // namespace ringlet::lanes
