#include "nn/dry_run.h"

#include <utility>

#include "kernels/running_statistics.h"

namespace ringlet::nn {

DryRun::DryRun(const Registry& registry, DType activations, Layout images) : registry_(registry) {
  for (Parameter* parameter : registry.parameters) {
    views_.push_back(parameter->value);
    views_.push_back(parameter->gradient);
    views_.push_back(parameter->narrow);
    views_.push_back(parameter->listed);
    parameter->listed =
        parameter->sampling ? external({parameter->room}, DType::i32, Layout::nchw) : View();
    const Layout layout = parameter->layout_beside(images);
    const Shape shape = parameter->held();
    parameter->value = external(shape, DType::f32, layout);
    parameter->gradient = external(parameter->with_gradient(), DType::f32, layout);
    parameter->narrow = is_narrow(activations) ? external(shape, activations, layout) : View();
    gradients_.push_back(std::move(parameter->gradients_by_rank));
    parameter->gradients_by_rank.clear();
    if (parameter->placement != Placement::rows || registry.along.alone()) continue;
    parameter->gradients_by_rank.assign(registry.along.shards > 0 && !parameter->is_written_once
                                            ? static_cast<std::size_t>(registry.along.ranks)
                                            : 1,
                                        parameter->gradient);
  }
  for (StateBuffer* buffer : registry.buffers) {
    views_.push_back(buffer->value);
    buffer->value = external(buffer->shape, DType::f32, Layout::nchw);
  }
  for (RunningStatistics* running : registry.running) {
    views_.push_back(running->values);
    views_.push_back(running->update);
    const std::int64_t channels = running->mean.shape.count();
    running->values = external({2, channels}, DType::f32, Layout::nchw);
    running->update = external({running_update_size(channels)}, DType::f32, Layout::nchw);
  }
}

DryRun::~DryRun() {
  auto view = views_.begin();
  auto by_rank = gradients_.begin();
  for (Parameter* parameter : registry_.parameters) {
    parameter->value = *view++;
    parameter->gradient = *view++;
    parameter->narrow = *view++;
    parameter->listed = *view++;
    parameter->gradients_by_rank = std::move(*by_rank++);
  }
  for (StateBuffer* buffer : registry_.buffers) buffer->value = *view++;
  for (RunningStatistics* running : registry_.running) {
    running->values = *view++;
    running->update = *view++;
  }
}

Axis* DryRun::axis(std::int64_t samples) {
  if (registry_.along.alone() || !registry_.is_sharded()) return nullptr;
  axis_.at = registry_.along;
  axis_.of_each = samples;
  return &axis_;
}

View DryRun::external(const Shape& shape, DType dtype, Layout layout) {
  return {device.allocate(storage_count(shape, layout) * size_of(dtype)), shape, dtype, layout};
}

}  // namespace ringlet::nn
