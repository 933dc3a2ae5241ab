#include "kernels/grid/running_statistics.h"

#include "kernels/cpu/loops.h"
#include "kernels/implementations.h"

namespace ringlet::impl {

void running_statistics_track(CpuStream&, const RunningSpec& spec, const ConstView& moments,
                              const View& update) {
  const grid::RunningTrack track = grid::running_track(spec, moments, update);
  for (std::int64_t i = 0; i <= track.channels; ++i) track(i);
}

void running_statistics_commit(CpuStream&, const ConstView& updates, const ConstView& places,
                               const View& values, const View& counters, const ConstView& scale) {
  const grid::RunningCommit commit = grid::running_commit(updates, places, values, counters, scale);
  for (std::int64_t i = 0; i < updates.count(); ++i) commit(i);
}

}  // namespace ringlet::impl
