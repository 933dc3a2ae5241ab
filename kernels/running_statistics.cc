#include "kernels/running_statistics.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void running_statistics_track(Stream& stream, const RunningSpec& spec, ConstView moments,
                              View update) {
  constexpr const char* kName = "running_statistics_track";
  require(moments.shape().rank() == 2, kName, "the moments should be [2, C]");
  const std::int64_t channels = moments.shape()[1];
  require_dense(kName, moments, Shape{2, channels});
  require_dense(kName, update, Shape{running_update_size(channels)});
  require(spec.count > 1, kName, "one value a channel has no variance");
  const Work work{kName, 6 * static_cast<double>(channels), total_bytes(moments, update, update)};
  dispatch(stream, work, impl::any::running_statistics_track, spec, moments, update);
}

void running_statistics_commit(Stream& stream, ConstView updates, ConstView targets, View values,
                               View counters, ConstView scale) {
  constexpr const char* kName = "running_statistics_commit";
  require_dense(kName, updates, Shape{updates.count()});
  require_dense(kName, values, Shape{values.count()});
  require_dtype(kName, targets, DType::i32);
  require_shape(kName, targets, Shape{updates.count(), 2});
  require_dtype(kName, counters, DType::i32);
  if (!scale.absent()) require_dense(kName, scale, Shape{1});
  const Work work{kName, 4 * static_cast<double>(updates.count()),
                  total_bytes(updates, targets, values, values)};
  dispatch(stream, work, impl::any::running_statistics_commit, updates, targets, values, counters,
           scale);
}

}  // namespace ringlet
