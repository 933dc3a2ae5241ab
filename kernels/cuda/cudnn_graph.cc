#include "kernels/cuda/cudnn_graph.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ringlet::cudnn_graph {

namespace {

/// Strides of a dense tensor; extents and strides are said in the order N, C, H, W.
std::array<std::int64_t, 4> strides_of(const Shape& shape, Layout layout) {
  if (layout == Layout::nhwc)
    return {shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]};
  return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
}

cudnnDataType_t data_type_of(DType dtype) {
  if (dtype == DType::bf16) return CUDNN_DATA_BFLOAT16;
  return dtype == DType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

/// How many values an attribute has.
std::int64_t count_of(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type) {
  std::int64_t count = 0;
  check_cudnn(cudnn().cudnnBackendGetAttribute(descriptor.handle(), name, type, 0, &count, nullptr),
              "cudnnBackendGetAttribute");
  return count;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnn().cudnnBackendCreateDescriptor(type, &handle_), "cudnnBackendCreateDescriptor");
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) cudnn().cudnnBackendDestroyDescriptor(handle_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t count, const void* values) {
  check_cudnn(cudnn().cudnnBackendSetAttribute(handle_, name, type, count, values),
              "cudnnBackendSetAttribute");
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  set(name, CUDNN_TYPE_INT64, std::ssize(values), values.data());
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<void* const> addresses) {
  set(name, CUDNN_TYPE_VOID_PTR, std::ssize(addresses), addresses.data());
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const char> text) {
  set(name, CUDNN_TYPE_CHAR, std::ssize(text), text.data());
}

void Descriptor::set(cudnnBackendAttributeName_t name, float value) {
  set(name, CUDNN_TYPE_FLOAT, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, bool value) {
  set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value) {
  set(name, CUDNN_TYPE_CONVOLUTION_MODE, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value) {
  set(name, CUDNN_TYPE_POINTWISE_MODE, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnNanPropagation_t value) {
  set(name, CUDNN_TYPE_NAN_PROPOGATION, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
  set(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
  set(name, CUDNN_TYPE_HANDLE, 1, &value);
}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  set(name, std::span(&value, 1));
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  static_assert(sizeof(Descriptor) == sizeof(cudnnBackendDescriptor_t));  // a row of handles
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(values), values.data());
}

cudnnStatus_t Descriptor::try_finalize() { return cudnn().cudnnBackendFinalize(handle_); }

void Descriptor::finalize() { check_cudnn(try_finalize(), "cudnnBackendFinalize"); }

Descriptor device_properties(std::string_view json) {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(json));
  properties.finalize();
  return properties;
}

Descriptor tensor(std::int64_t id, const Shape& shape, DType dtype, Layout layout,
                  std::int64_t alignment, bool is_virtual) {
  const std::array<std::int64_t, 4> extents = {shape[0], shape[1], shape[2], shape[3]};
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, data_type_of(dtype));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides_of(shape, layout));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::max(alignment, ringlet::size_of(dtype)));
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  tensor.finalize();
  return tensor;
}

Descriptor convolution(const Conv2dSpec& spec) {
  const auto pair = [](const Extent2& e) { return std::array<std::int64_t, 2>{e.h, e.w}; };
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, pair(spec.stride));
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pair(spec.padding));
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pair(spec.padding));
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, pair(spec.dilation));
  convolution.finalize();
  return convolution;
}

Descriptor pointwise(cudnnPointwiseMode_t mode) {
  Descriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  pointwise.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (mode == CUDNN_POINTWISE_RELU_FWD) {  // elementwise.h: a NaN passes through
    pointwise.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
  }
  pointwise.finalize();
  return pointwise;
}

Descriptor operation_graph(const Target& target, std::span<const Descriptor> operations) {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  graph.finalize();
  return graph;
}

std::vector<Descriptor> engine_configs(const Target& target, const Descriptor& graph,
                                       cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (target.device_properties != nullptr) {
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device_properties);
  }
  if (heuristic.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  const std::int64_t capacity =
      count_of(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  std::vector<Descriptor> configs;
  for (std::int64_t i = 0; i < capacity; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  }
  std::int64_t count = 0;
  check_cudnn(cudnn().cudnnBackendGetAttribute(heuristic.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, capacity, &count,
                                               configs.data()),
              "cudnnBackendGetAttribute");
  configs.erase(configs.begin() + count, configs.end());
  return configs;
}

namespace {

Descriptor engine_of(const Descriptor& engine_config) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  std::int64_t count = 0;
  cudnnBackendDescriptor_t handle = engine.handle();
  check_cudnn(cudnn().cudnnBackendGetAttribute(engine_config.handle(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &handle),
              "cudnnBackendGetAttribute");
  return engine;
}

}  // namespace

std::int64_t engine_number(const Descriptor& engine_config) {
  std::int64_t number = -1, count = 0;
  const cudnnStatus_t status = cudnn().cudnnBackendGetAttribute(
      engine_of(engine_config).handle(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
      &count, &number);
  return status == CUDNN_STATUS_SUCCESS && count == 1 ? number : -1;
}

std::uint32_t numerical_notes(const Descriptor& engine_config) {
  const Descriptor engine = engine_of(engine_config);
  std::int64_t count = 0;
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  check_cudnn(cudnn().cudnnBackendGetAttribute(engine.handle(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                               CUDNN_TYPE_NUMERICAL_NOTE, std::ssize(notes), &count,
                                               notes.data()),
              "cudnnBackendGetAttribute");
  std::uint32_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i) bits |= 1U << notes[static_cast<std::size_t>(i)];
  return bits;
}

std::optional<Descriptor> execution_plan(const Target& target, const Descriptor& engine_config,
                                         std::string& why_not) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine_config);
  if (target.handle != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  if (target.device_properties != nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device_properties);
  }
  const cudnnStatus_t status = plan.try_finalize();
  if (status == CUDNN_STATUS_SUCCESS) return plan;
  why_not = explain(status);
  return std::nullopt;
}

std::int64_t workspace_bytes(const Descriptor& plan) {
  std::int64_t bytes = 0, count = 0;
  check_cudnn(
      cudnn().cudnnBackendGetAttribute(plan.handle(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                       CUDNN_TYPE_INT64, 1, &count, &bytes),
      "cudnnBackendGetAttribute");
  return bytes;
}

Descriptor variant_pack(std::span<const std::int64_t> ids, std::span<void* const> addresses,
                        void* workspace) {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(&workspace, 1));
  pack.finalize();
  return pack;
}

}  // namespace ringlet::cudnn_graph
