// The kernels of kernels/running_statistics.h. The CPU runs the same functors in a loop.
#pragma once

#include <cmath>

#include "kernels/grid/grid.h"
#include "kernels/running_statistics.h"

namespace ringlet::grid {

/// Channel i of [0, C); i = C is the three scalars.
struct RunningTrack {
  std::int64_t channels;
  float keep, factor, per_value;  // 1 - momentum, momentum * share, 1 / (count - 1)
  float batches, decay;           // K and D of the shard until now
  const float* moments;
  float* update;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    if (i < channels) {
      update[i] = keep * update[i] + factor * moments[i];
      update[channels + i] =
          keep * update[channels + i] + factor * (moments[channels + i] * per_value);
    } else {
      float* const scalars = update + 2 * channels;
      scalars[0] = batches;
      scalars[1] = keep * scalars[1] + factor;
      scalars[2] = decay;
    }
  }
};

inline RunningTrack running_track(const RunningSpec& spec, const ConstView& moments,
                                  const View& update) {
  const double keep = 1 - static_cast<double>(spec.momentum);
  return {moments.shape()[1],
          static_cast<float>(keep),
          static_cast<float>(static_cast<double>(spec.momentum) * spec.share),
          static_cast<float>(1 / (spec.count - 1)),
          static_cast<float>(spec.batches * spec.so_far),
          static_cast<float>(std::pow(keep, spec.batches) * spec.so_far),
          moments.f32(),
          update.f32()};
}

struct RunningCommit {
  const float* updates;
  const std::int32_t* targets;
  float* values;
  std::int32_t* counters;
  const float* scale;  // may be null

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    if (scale != nullptr && *scale == 0.0F) return;
    const std::int32_t target = targets[2 * i];
    const float* const scalars = updates + targets[2 * i + 1];
    if (target == RunningTarget::kNothing || scalars[1] == 0.0F) return;
    if (target < RunningTarget::kNothing) {
      counters[-2 - target] += static_cast<std::int32_t>(std::lround(updates[i]));
    } else {
      const float decay = scalars[2];
      values[target] = decay * values[target] + (1.0F - decay) * (updates[i] / scalars[1]);
    }
  }
};

inline RunningCommit running_commit(const ConstView& updates, const ConstView& targets,
                                    const View& values, const View& counters,
                                    const ConstView& scale) {
  return {updates.f32(), targets.as<std::int32_t>(), values.f32(), counters.as<std::int32_t>(),
          scale.absent() ? nullptr : scale.f32()};
}

template <class Grid>
void running_statistics_track(Grid&& grid, const RunningSpec& spec, const ConstView& moments,
                              const View& update) {
  grid.for_each("running_statistics_track", moments.shape()[1] + 1,
                running_track(spec, moments, update));
}

template <class Grid>
void running_statistics_commit(Grid&& grid, const ConstView& updates, const ConstView& targets,
                               const View& values, const View& counters,
                               const ConstView& scale = {}) {
  grid.for_each("running_statistics_commit", updates.count(),
                running_commit(updates, targets, values, counters, scale));
}

}  // namespace ringlet::grid
