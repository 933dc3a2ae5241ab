// cuDNN's graph API as far as Ringlet calls it: a convolution of f32, bf16 or f16, forwards or
// backwards, with a bias and ReLU behind it. Sums are f32, and rounded once.
//
// By itself it takes every graph and proposes three engines. The first one says of itself that it
// uses tensor cores, and so rounds f32 to TF32. The third one says that it is not deterministic,
// wants scratch memory, and adds in another order. As with the real one, what computes a ReLU
// without a bias uses tensor cores, whichever it is.
//
// RINGLET_STAND_IN_PLANNER=cudnn: descriptors have a twin in the real cuDNN, which plans for an
// H100 that is described to it. What it refuses is refused. Engines, notes and scratch memory are
// its own. Engines that it compiles at run time want a driver, and so are refused here.
#include <cudnn_graph.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda_stand_in/convolution.h"
#include "tests/cuda_stand_in/faults.h"
#include "tests/cuda_stand_in/floats.h"
#include "tests/cuda_stand_in/planner.h"
#include "tests/cuda_stand_in/stand_in.h"

using ringlet::stand_in::Convolution;
using ringlet::stand_in::Tensor;

namespace {

struct Part;
using Parts = std::vector<std::shared_ptr<const Part>>;

/// What a descriptor holds: its attributes, as bytes or as other descriptors.
struct Part {
  cudnnBackendDescriptorType_t type{};
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> values;
  std::map<cudnnBackendAttributeName_t, Parts> parts;
  std::int64_t engine = 0;                  ///< its place among the proposals
  std::int64_t scratch = 0;                 ///< bytes that a plan wants
  bool tensor_cores = false;                ///< whether a plan uses them
  cudnnBackendDescriptor_t twin = nullptr;  ///< in the real cuDNN

  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() {
    using ringlet::stand_in::Question;
    if (twin == nullptr) return;
    ringlet::stand_in::ask({.call = Question::destroy, .twin = twin}, nullptr);
  }

  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const auto found = values.find(name);
    if (found == values.end()) return {};
    std::vector<T> result(found->second.size() / sizeof(T));
    std::memcpy(result.data(), found->second.data(), result.size() * sizeof(T));
    return result;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name, T otherwise = {}) const {
    const auto found = values.find(name);
    if (found != values.end()) std::memcpy(&otherwise, found->second.data(), sizeof(T));
    return otherwise;
  }
  const Part* part(cudnnBackendAttributeName_t name) const {
    const auto found = parts.find(name);
    return found == parts.end() ? nullptr : found->second.at(0).get();
  }
};

struct Descriptor {
  std::shared_ptr<Part> part = std::make_shared<Part>();
  bool finalized = false;
};

Descriptor* descriptor_of(cudnnBackendDescriptor_t handle) {
  return static_cast<Descriptor*>(handle);
}

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    default:  // float and the enumerations
      return 4;
  }
}

constexpr std::int64_t kEngines = 3, kScratchBytes = 512;

/// Whether the engine's graph is a convolution with a ReLU and no bias.
bool is_relu_alone(const Part& engine) {
  const Parts& operations =
      engine.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  return operations.size() == 2 &&
         operations[1]
                 ->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                 ->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_RELU_FWD;
}

/// The stand-in's own engines.
bool uses_tensor_cores(const Part& engine) { return engine.engine == 0 || is_relu_alone(engine); }

using ringlet::stand_in::Answer;
using ringlet::stand_in::ask;
using ringlet::stand_in::Question;

/// The twin gets the same attribute, with twins in place of descriptors. It has no handle.
cudnnStatus_t set_twin(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  if (type == CUDNN_TYPE_HANDLE) return CUDNN_STATUS_SUCCESS;
  const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(type));
  const auto* const begin = static_cast<const std::byte*>(values);
  std::vector<std::byte> copy(begin, begin + bytes);
  for (std::int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; ++i) {
    Descriptor* one = nullptr;
    std::memcpy(&one, &copy[static_cast<std::size_t>(i) * sizeof one], sizeof one);
    std::memcpy(&copy[static_cast<std::size_t>(i) * sizeof one], &one->part->twin, sizeof one);
  }
  return ask({.call = Question::set,
              .name = name,
              .type = type,
              .twin = descriptor.part->twin,
              .count = count,
              .bytes = bytes},
             copy.data())
      .status;
}

/// `values` may be null.
cudnnStatus_t get_of_twin(const Part& part, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, std::int64_t wanted,
                          std::int64_t* count, void* values) {
  Question question{.call = Question::get, .name = name, .type = type, .twin = part.twin};
  question.count = wanted;
  if (values != nullptr) question.bytes = wanted * static_cast<std::int64_t>(size_of(type));
  const Answer answer = ask(question, values);
  *count = answer.count;
  return answer.status;
}

/// Whether the real engine of a configuration says so.
bool has_tensor_cores(const Part& config) {
  Part engine;
  engine.twin =
      ask({.call = Question::create, .name = CUDNN_BACKEND_ENGINE_DESCRIPTOR}, nullptr).twin;
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  std::int64_t count = 0;
  get_of_twin(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
              &engine.twin);
  get_of_twin(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
              std::ssize(notes), &count, notes.data());
  const auto end = notes.begin() + count;
  return std::find(notes.begin(), end, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != end;
}

/// Plans are for the described GPU, but where the caller describes another.
cudnnStatus_t finalize_twin(const Descriptor& descriptor) {
  Part& part = *descriptor.part;
  Question question{.call = Question::finalize, .twin = descriptor.part->twin};
  const bool is_plan = part.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
  const auto aimed =
      is_plan ? CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP : CUDNN_ATTR_ENGINEHEUR_DEVICEPROP;
  const bool can_be_aimed = is_plan || part.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR;
  if (can_be_aimed && !part.parts.contains(aimed)) question.aimed = aimed;
  const cudnnStatus_t status = ask(question, nullptr).status;
  if (!is_plan || status != CUDNN_STATUS_SUCCESS) return status;
  part.tensor_cores = has_tensor_cores(*part.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
  std::int64_t count = 0;
  return get_of_twin(*descriptor.part, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                     1, &count, &part.scratch);
}

/// How many proposals there are: without `configs` of all, else of those that were put there.
std::int64_t propose(const Descriptor& heuristic, std::int64_t wanted, Descriptor** configs) {
  if (heuristic.part->twin == nullptr)
    return configs == nullptr ? kEngines : std::min(wanted, kEngines);
  std::vector<cudnnBackendDescriptor_t> twins;
  for (std::int64_t i = 0; configs != nullptr && i < wanted; ++i)
    twins.push_back(configs[i]->part->twin);
  std::int64_t count = 0;
  get_of_twin(*heuristic.part, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              std::ssize(twins), &count, configs == nullptr ? nullptr : twins.data());
  return count;
}

/// The names of one pass's attributes.
struct Names {
  cudnnBackendAttributeName_t x, w, y, convolution, beta;
};

Names names_of(cudnnBackendDescriptorType_t pass) {
  switch (pass) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

/// Whether all of it is one allocation's.
bool is_in_one_allocation(const void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return begin + bytes <= ringlet::stand_in::memory_at(begin).second;
}

using Addresses = std::map<std::int64_t, float*>;

Addresses addresses_of(const Part& pack) {
  const auto ids = pack.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.all<float*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  Addresses addresses;
  for (std::size_t i = 0; i < ids.size(); ++i) addresses[ids[i]] = pointers.at(i);
  return addresses;
}

ringlet::DType dtype_of(cudnnDataType_t type) {
  if (type == CUDNN_DATA_BFLOAT16) return ringlet::DType::bf16;
  return type == CUDNN_DATA_HALF ? ringlet::DType::f16 : ringlet::DType::f32;
}

/// Throws std::out_of_range where the pack lacks an address, or one is not aligned as was said.
Tensor tensor_of(const Part& part, const Addresses& addresses) {
  Tensor tensor{part.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
                part.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES), nullptr,
                dtype_of(part.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE))};
  if (part.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) return tensor;
  tensor.data = addresses.at(part.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID));
  const auto alignment = part.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
  if (reinterpret_cast<std::intptr_t>(tensor.data) % alignment != 0) {
    throw std::out_of_range("an address that is not aligned");
  }
  return tensor;
}

Convolution convolution_of(const Part& config, const Addresses& addresses) {
  const Part& graph = *config.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  Convolution result;
  result.backwards = config.engine % 3 == 2;
  for (const auto& operation : graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    if (operation->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
      const Part& pointwise = *operation->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      const auto mode = pointwise.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
      if (mode == CUDNN_POINTWISE_RELU_FWD) result.relu = true;
      if (mode == CUDNN_POINTWISE_ADD) {
        result.bias = tensor_of(*operation->part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC), addresses);
      }
      result.y = tensor_of(*operation->part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC), addresses);
      continue;
    }
    const Names names = names_of(operation->type);
    const Part& convolution = *operation->part(names.convolution);
    result.pass = operation->type;
    result.x = tensor_of(*operation->part(names.x), addresses);
    result.w = tensor_of(*operation->part(names.w), addresses);
    result.y = tensor_of(*operation->part(names.y), addresses);
    result.stride = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    result.padding = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    result.dilation = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    result.beta = operation->one<float>(names.beta);
  }
  return result;
}

const char* name_of(cudnnBackendDescriptorType_t pass) {
  switch (pass) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return "conv2d_backward_data";
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return "conv2d_backward_filter";
    default:
      return "conv2d_forward";
  }
}

}  // namespace

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_NULL_POINTER:
      return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    default:
      return "an error of the stand-in";
  }
}

void cudnnGetLastErrorString(char* text, std::size_t size) {
  const bool asks = ringlet::stand_in::wants_real_plans();
  const std::string last = asks ? ringlet::stand_in::last_refusal() : "";
  if (size > 0) text[last.copy(text, size - 1)] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* handle) {
  auto* descriptor = new Descriptor;
  descriptor->part->type = type;
  *handle = descriptor;
  const bool has_twin =
      ringlet::stand_in::wants_real_plans() && type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
  if (!has_twin) return CUDNN_STATUS_SUCCESS;
  const Answer answer = ask({.call = Question::create, .name = type}, nullptr);
  descriptor->part->twin = answer.twin;
  return answer.status;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
  delete descriptor_of(handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  Descriptor& descriptor = *descriptor_of(handle);
  if (descriptor.finalized) return CUDNN_STATUS_BAD_PARAM;
  if (descriptor.part->twin != nullptr) {
    const cudnnStatus_t status = set_twin(descriptor, name, type, count, values);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    Parts& parts = descriptor.part->parts[name];
    parts.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      const Descriptor& other = **(static_cast<Descriptor* const*>(values) + i);
      if (!other.finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
      parts.push_back(other.part);
    }
    return CUDNN_STATUS_SUCCESS;
  }
  const auto* bytes = static_cast<const std::byte*>(values);
  descriptor.part->values[name].assign(bytes,
                                       bytes + static_cast<std::size_t>(count) * size_of(type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t wanted,
                                       std::int64_t* count, void* values) {
  const Descriptor& descriptor = *descriptor_of(handle);
  if (!descriptor.finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *count = propose(descriptor, wanted, static_cast<Descriptor**>(values));
      if (values == nullptr) {
        ringlet::stand_in::note("search");
        return CUDNN_STATUS_SUCCESS;
      }
      for (std::int64_t i = 0; i < *count; ++i) {
        Descriptor& config = **(static_cast<Descriptor**>(values) + i);
        config.part->engine = i;
        config.part->parts = descriptor.part->parts;  // the graph
        config.finalized = true;
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Descriptor& engine = **static_cast<Descriptor**>(values);
      engine.part->engine = descriptor.part->engine;
      engine.part->parts = descriptor.part->parts;  // the graph
      engine.finalized = true;
      *count = 1;
      if (descriptor.part->twin == nullptr) return CUDNN_STATUS_SUCCESS;
      return get_of_twin(*descriptor.part, name, type, 1, count, &engine.part->twin);
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:  // the stand-in's own have no numbers
      if (descriptor.part->twin == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
      return get_of_twin(*descriptor.part, name, type, wanted, count, values);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      if (descriptor.part->twin != nullptr) {
        return get_of_twin(*descriptor.part, name, type, wanted, count, values);
      }
      auto* const notes = static_cast<cudnnBackendNumericalNote_t*>(values);
      *count = 0;
      if (descriptor.part->engine == 2) notes[(*count)++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
      if (uses_tensor_cores(*descriptor.part)) {
        notes[(*count)++] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *count = 1;
      *static_cast<std::int64_t*>(values) = descriptor.part->scratch;
      return CUDNN_STATUS_SUCCESS;
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  Descriptor& descriptor = *descriptor_of(handle);
  if (descriptor.finalized) return CUDNN_STATUS_BAD_PARAM;
  descriptor.finalized = true;
  if (descriptor.part->twin != nullptr) return finalize_twin(descriptor);
  Part& part = *descriptor.part;
  if (part.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const Part& config = *part.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    part.scratch = config.engine == 2 ? kScratchBytes : 0;
    part.tensor_cores = uses_tensor_cores(config);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variant_pack) {
  const Part& pack = *descriptor_of(variant_pack)->part;
  const Part& planned = *descriptor_of(plan)->part;
  const Part& config = *planned.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  auto* scratch = pack.one<std::byte*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const auto scratch_bytes = static_cast<std::size_t>(planned.scratch);
  if (scratch_bytes > 0 && scratch == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (scratch_bytes > 0 && !is_in_one_allocation(scratch, scratch_bytes)) {
    ringlet::stand_in::break_devices("cuDNN: " + std::to_string(scratch_bytes) +
                                     " bytes of scratch memory do not fit where they were put");
    return CUDNN_STATUS_EXECUTION_FAILED;
  }
  try {
    Convolution convolution = convolution_of(config, addresses_of(pack));
    convolution.tensor_cores = planned.tensor_cores;
    ringlet::stand_in::enqueue(
        handle->stream, name_of(convolution.pass), [convolution, scratch, scratch_bytes] {
          // Both ends tell of scratch memory that is too small or used twice; it may be large.
          const std::size_t shown = std::min<std::size_t>(scratch_bytes, 4096);
          if (shown > 0) std::memset(scratch, 0xFF, shown);
          if (shown > 0) std::memset(scratch + scratch_bytes - shown, 0xFF, shown);
          convolution.run();
        });
  } catch (const std::out_of_range&) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
