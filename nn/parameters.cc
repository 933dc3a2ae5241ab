#include "nn/parameters.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"

namespace ringlet::nn {

namespace {

std::int64_t buffer_elements(const Registry& registry) {
  std::int64_t elements = 0;
  for (const StateBuffer* buffer : registry.buffers) elements += buffer->shape.count();
  return std::max<std::int64_t>(elements, 1);
}

}  // namespace

Parameters::Parameters(Device& device, const Registry& registry, const Plan& plan,
                       int gradient_arenas, Allocator* gradients_from)
    : registry_(registry),
      plan_(plan),
      values_(device, {plan.elements}),
      buffers_(device, {buffer_elements(registry)}),
      device_(device) {
  Stream& stream = device.compute();
  Allocator& gradient_memory = gradients_from != nullptr ? *gradients_from : device;
  for (int i = 0; i < gradient_arenas; ++i) {
    gradients_.emplace_back(gradient_memory, Shape{plan.elements + kStatistics});
    fill(stream, 0, gradients_.back());
  }
  fill(stream, 0, values_);
  fill(stream, 0, buffers_);
  for (const PlannedParameter& planned : plan.parameters) {
    registry_.parameters.at(static_cast<std::size_t>(planned.id))->value =
        values().slice(planned.begin, planned.end).reshaped(planned.shape);
  }
  if (gradient_arenas > 0) use_gradient_arena(0);
  std::int64_t begin = 0;
  for (StateBuffer* buffer : registry_.buffers) {
    const std::int64_t end = begin + buffer->shape.count();
    buffer->value = buffers().slice(begin, end).reshaped(buffer->shape);
    fill(stream, buffer->start, buffer->value);
    begin = end;
  }
}

void Parameters::initialize(std::uint64_t seed) {
  std::vector<float> host;
  for (const Parameter* parameter : registry_.parameters) {
    host.resize(static_cast<std::size_t>(parameter->shape.count()));
    nn::initialize(parameter->initializer, seed, parameter->name, host);
    copy_from_host(device_.compute(), host.data(), parameter->value);
  }
  for (const StateBuffer* buffer : registry_.buffers) {
    fill(device_.compute(), buffer->start, buffer->value);
  }
}

View Parameters::statistics(int arena) const {
  return gradients(arena).slice(plan_.elements, plan_.elements + kStatistics);
}

void Parameters::use_gradient_arena(int arena) {
  const View flat = gradients(arena);
  for (const PlannedParameter& planned : plan_.parameters) {
    registry_.parameters.at(static_cast<std::size_t>(planned.id))->gradient =
        flat.slice(planned.begin, planned.end).reshaped(planned.shape);
  }
}

}  // namespace ringlet::nn
