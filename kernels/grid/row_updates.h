// The kernels of kernels/row_updates.h: a thread has an element of a row that is named.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/row_updates.h"

namespace ringlet::grid {

/// Where element i of the gradient belongs in the whole matrix; below 0: there is no such row.
struct NamedRows {
  Divisor columns;
  const std::int32_t* rows = nullptr;
  std::int64_t all = 0;

  NamedRows(const ConstView& named, const ConstView& whole)
      : columns(std::max<std::int64_t>(1, whole.shape()[1])),
        rows(named.as<std::int32_t>()),
        all(whole.shape()[0]) {}
  RINGLET_HOST_DEVICE std::int64_t index(std::int64_t i) const {
    const std::int64_t which = columns.quotient(i);
    const std::int64_t row = rows[which];
    if (row < 0 || row >= all) return -1;
    return row * columns.divisor() + (i - which * columns.divisor());
  }
};

/// `velocity` and `scale` may be null.
struct SgdRows {
  NamedRows rows;
  SgdSpec spec;
  const float* device_rates = nullptr;  // learning rate, momentum
  float* value = nullptr;
  const float* gradient = nullptr;
  float* velocity = nullptr;
  const float* scale = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const float factor = scale == nullptr ? 1.0F : *scale;
    const std::int64_t at = rows.index(i);
    if (factor == 0.0F || at < 0) return;
    const element::SgdRates rates{device_rates[0], device_rates[1], spec.weight_decay,
                                  spec.nesterov};
    float speed = velocity == nullptr ? 0.0F : velocity[at], moved = value[at];
    element::sgd_step(rates, factor * gradient[i], speed, moved);
    if (velocity != nullptr) {
      velocity[at] = speed;
    } else if (rates.momentum != 0) {  // a kernel cannot throw; what it cannot do must show
      moved = std::numeric_limits<float>::quiet_NaN();
    }
    value[at] = moved;
  }
};

/// Floor: reads 12 R D bytes, writes 8 R D.
template <class Grid>
void sgd_update_rows(Grid&& grid, const SgdSpec& spec, const ConstView& rates,
                     const ConstView& rows, const View& value, const ConstView& gradient,
                     const View& velocity, const ConstView& scale = {}) {
  grid.for_each("sgd_update_rows", gradient.count(),
                SgdRows{{rows, value},
                        spec,
                        rates.f32(),
                        value.f32(),
                        gradient.f32(),
                        velocity.absent() ? nullptr : velocity.f32(),
                        scale.absent() ? nullptr : scale.f32()});
}

/// `scale` may be null.
struct AdamWRows {
  NamedRows rows;
  AdamWSpec spec;
  const float* device_rates = nullptr;  // see adamw_update()
  const float* corrections = nullptr;   // of each row; may be null
  float* value = nullptr;
  const float* gradient = nullptr;
  float* mean = nullptr;
  float* square = nullptr;
  const float* scale = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const float factor = scale == nullptr ? 1.0F : *scale;
    const std::int64_t at = rows.index(i);
    if (factor == 0.0F || at < 0) return;
    const float* corrected =
        corrections == nullptr ? device_rates + 2 : corrections + 2 * rows.columns.quotient(i);
    const element::AdamWRates rates{device_rates[0], spec.beta2,   spec.square_share,
                                    device_rates[1], corrected[0], corrected[1],
                                    spec.epsilon};
    float new_mean = mean[at], new_square = square[at], moved = value[at];
    element::adamw_step(rates, factor * gradient[i], new_mean, new_square, moved);
    mean[at] = new_mean;
    square[at] = new_square;
    value[at] = moved;
  }
};

/// Floor: reads 16 R D bytes, writes 12 R D.
template <class Grid>
void adamw_update_rows(Grid&& grid, const AdamWSpec& spec, const ConstView& rates,
                       const ConstView& rows, const View& value, const ConstView& gradient,
                       const View& mean, const View& square, const ConstView& scale = {},
                       const ConstView& corrections = {}) {
  grid.for_each("adamw_update_rows", gradient.count(),
                AdamWRows{{rows, value},
                          spec,
                          rates.f32(),
                          corrections.absent() ? nullptr : corrections.f32(),
                          value.f32(),
                          gradient.f32(),
                          mean.f32(),
                          square.f32(),
                          scale.absent() ? nullptr : scale.f32()});
}

/// `scale` may be null.
struct AdamWCounts {
  AdamWSpec spec;
  const float* lr = nullptr;
  const float* device_rates = nullptr;
  const std::int32_t* rows = nullptr;
  std::int64_t all = 0;
  float* counts = nullptr;
  float* corrections = nullptr;
  const float* scale = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    corrections[2 * i] = corrections[2 * i + 1] = 0;
    const std::int64_t row = rows[i];
    if (row < 0 || row >= all || (scale != nullptr && *scale == 0.0F)) return;
    const float count = counts[row] + 1.0F;
    counts[row] = count;
    // From 1 - beta, which keeps the digits that a beta near 1 has lost in f32.
    const double of_mean = 1 - power(1 - static_cast<double>(device_rates[0]), count);
    const double of_square = 1 - power(1 - static_cast<double>(spec.square_share), count);
    corrections[2 * i] = static_cast<float>(static_cast<double>(*lr) / of_mean);
    corrections[2 * i + 1] = static_cast<float>(1 / std::sqrt(of_square));
  }

 private:
  /// base to a whole number of steps, by squaring.
  RINGLET_HOST_DEVICE static double power(double base, float steps) {
    double result = 1;
    auto left = static_cast<std::int64_t>(steps);
    RINGLET_ROLLED
    for (; left > 0; left >>= 1) {
      if ((left & 1) != 0) result *= base;
      base *= base;
    }
    return result;
  }
};

template <class Grid>
void adamw_count_rows(Grid&& grid, const AdamWSpec& spec, const ConstView& lr,
                      const ConstView& rates, const ConstView& rows, const View& counts,
                      const View& corrections, const ConstView& scale = {}) {
  grid.for_each(
      "adamw_count_rows", rows.count(),
      AdamWCounts{spec, lr.f32(), rates.f32(), rows.as<std::int32_t>(), counts.count(),
                  counts.f32(), corrections.f32(), scale.absent() ? nullptr : scale.f32()});
}

}  // namespace ringlet::grid
