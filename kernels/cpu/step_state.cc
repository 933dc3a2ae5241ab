// The CPU's implementations of kernels/running_statistics.h and loss_scale.h: few numbers, so one
// thread does what a GPU's threads do.
#include "kernels/grid/loss_scale.h"
#include "kernels/grid/running_statistics.h"
#include "kernels/implementations.h"

namespace ringlet::impl {

void running_statistics_track(CpuStream&, const RunningSpec& spec, const ConstView& moments,
                              const View& update) {
  const grid::RunningTrack track = grid::running_track(spec, moments, update);
  for (std::int64_t i = 0; i <= track.channels; ++i) track(i);
}

void running_statistics_commit(CpuStream&, const ConstView& updates, const ConstView& targets,
                               const View& values, const View& counters, const ConstView& scale) {
  const grid::RunningCommit commit =
      grid::running_commit(updates, targets, values, counters, scale);
  for (std::int64_t i = 0; i < updates.count(); ++i) commit(i);
}

void loss_scale_begin(CpuStream&, const ConstView& state, const ConstView& newest,
                      const ConstView& table, const View& seed, const View& rates) {
  const auto begin = grid::loss_scale_beginning(state, newest, table, seed, rates);
  for (std::int64_t i = 0; i < rates.count(); ++i) begin(i);
}

void loss_scale_end(CpuStream&, const LossScaleSpec& spec, const View& norm, const View& state,
                    const View& factor, const View& told) {
  grid::loss_scale_ending(spec, norm, state, factor, told)(0);
}

}  // namespace ringlet::impl
