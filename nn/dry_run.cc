#include "nn/dry_run.h"

#include "kernels/running_statistics.h"

namespace ringlet::nn {

DryRun::DryRun(const Registry& registry, DType activations, Layout images) : registry_(registry) {
  for (Parameter* parameter : registry.parameters) {
    views_.push_back(parameter->value);
    views_.push_back(parameter->gradient);
    views_.push_back(parameter->narrow);
    const Layout layout = parameter->layout_beside(images);
    parameter->value = external(parameter->shape, DType::f32, layout);
    parameter->gradient = external(parameter->shape, DType::f32, layout);
    parameter->narrow =
        is_narrow(activations) ? external(parameter->shape, activations, layout) : View();
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
  for (Parameter* parameter : registry_.parameters) {
    parameter->value = *view++;
    parameter->gradient = *view++;
    parameter->narrow = *view++;
  }
  for (StateBuffer* buffer : registry_.buffers) buffer->value = *view++;
  for (RunningStatistics* running : registry_.running) {
    running->values = *view++;
    running->update = *view++;
  }
}

View DryRun::external(const Shape& shape, DType dtype, Layout layout) {
  return {device.allocate(storage_count(shape, layout) * size_of(dtype)), shape, dtype, layout};
}

}  // namespace ringlet::nn
