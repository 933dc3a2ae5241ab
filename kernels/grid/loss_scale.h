// The kernels of kernels/loss_scale.h: a few numbers. The CPU runs the same functors in a loop.
#pragma once

#include <bit>

#include "kernels/elements.h"
#include "kernels/grid/grid.h"
#include "kernels/loss_scale.h"

namespace ringlet::grid {

/// Indices of the state.
enum LossScaleIndex : int { kScale = 0, kGoodSteps = 1, kSkipsInRow = 2, kSkips = 3 };

/// Rate i.
struct LossScaleBegin {
  const float* state;
  const float* newest;
  const float* table;
  float* seed;
  float* rates;
  std::int64_t rows;
  std::int64_t width;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const float wanted = *newest - state[kSkips];
    std::int64_t row = wanted > 0 ? static_cast<std::int64_t>(wanted) : 0;
    if (row >= rows) row = rows - 1;
    rates[i] = table[row * width + i];
    if (i == 0) *seed *= state[kScale];
  }
};

inline LossScaleBegin loss_scale_beginning(const ConstView& state, const ConstView& newest,
                                           const ConstView& table, const View& seed,
                                           const View& rates) {
  return {state.f32(), newest.f32(),     table.f32(),     seed.f32(),
          rates.f32(), table.shape()[0], table.shape()[1]};
}

struct LossScaleEnd {
  LossScaleSpec spec;
  float* norm = nullptr;
  float* state = nullptr;
  float* factor = nullptr;
  float* told = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t) const {
    const float scale = state[kScale];
    const float unscale = 1.0F / scale;  // exact: a power of two
    told[1] = scale;
    if (element::is_nonfinite(std::bit_cast<std::uint32_t>(*norm))) {
      factor[0] = factor[1] = 0;
      state[kScale] = scale > 2.0F ? scale / 2 : 1.0F;
      state[kGoodSteps] = 0;
      state[kSkipsInRow] += 1;
      state[kSkips] += 1;
    } else {
      *norm *= unscale;
      factor[0] = spec.most > 0 ? unscale * element::clip_factor(*norm, spec.most) : unscale;
      factor[1] = unscale;
      state[kGoodSteps] += 1;
      state[kSkipsInRow] = 0;
      if (state[kGoodSteps] >= static_cast<float>(spec.growth_interval)) {
        state[kGoodSteps] = 0;
        if (scale < 0x1p126F) state[kScale] = 2 * scale;  // its reciprocal is a normal number
      }
    }
    told[0] = state[kSkipsInRow];
  }
};

inline LossScaleEnd loss_scale_ending(const LossScaleSpec& spec, const View& norm,
                                      const View& state, const View& factor, const View& told) {
  return {spec, norm.f32(), state.f32(), factor.f32(), told.f32()};
}

template <class Grid>
void loss_scale_begin(Grid&& grid, const ConstView& state, const ConstView& newest,
                      const ConstView& table, const View& seed, const View& rates) {
  grid.for_each("loss_scale_begin", rates.count(),
                loss_scale_beginning(state, newest, table, seed, rates));
}

template <class Grid>
void loss_scale_end(Grid&& grid, const LossScaleSpec& spec, const View& norm, const View& state,
                    const View& factor, const View& told) {
  grid.for_each("loss_scale_end", 1, loss_scale_ending(spec, norm, state, factor, told));
}

}  // namespace ringlet::grid
