// A thin owner for the descriptors of cuDNN's graph API, and the few kinds of them that a
// convolution needs.
//
// How cuDNN is asked for a kernel: tensors (shapes and strides, no memory) and operations on them
// form a graph; a heuristic lists engine configurations for the graph, best first; the first one
// that can be built for the device is the plan; a plan is executed with a variant pack, which has
// the addresses of the tensors by number.
//
// Descriptors are finalized by the functions that make them. One that others refer to has to live
// as long as they do.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/conv2d.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/tensor.h"

namespace ringlet::cudnn_graph {

static_assert(CUDNN_VERSION >= 90800, "cuDNN 9.8 or newer is needed");  // device_properties()

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  cudnnBackendDescriptor_t handle() const { return handle_; }

  /// Sets an attribute to one value or several. Throws DeviceError with cuDNN's reason.
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set(cudnnBackendAttributeName_t name, std::int64_t value) {
    set(name, std::span(&value, 1));
  }
  void set(cudnnBackendAttributeName_t name, std::span<void* const> addresses);
  void set(cudnnBackendAttributeName_t name, std::span<const char> text);
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnNanPropagation_t value);
  void set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);

  /// No attribute can be set any more. Throws DeviceError with cuDNN's reason.
  void finalize();
  /// As finalize(), but returns the status: for descriptors that may turn out not to be supported.
  cudnnStatus_t try_finalize();

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);

  cudnnBackendDescriptor_t handle_ = nullptr;
};

/// The target of plans: the device of a handle or, without a GPU, a device that is described.
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* device_properties = nullptr;
};

/// A GPU that need not be there, from the text that cuDNN itself writes about one.
Descriptor device_properties(std::string_view json);

/// A dense tensor of floats with four extents in the layout nchw or nhwc. A virtual one is a value
/// inside the graph that never reaches memory. `alignment`: bytes that the address is a multiple
/// of, besides those of an element.
Descriptor tensor(std::int64_t id, const Shape& shape, DType dtype, Layout layout,
                  std::int64_t alignment, bool is_virtual = false);
/// Has no number of groups: cuDNN takes it from the tensors' channels.
Descriptor convolution(const Conv2dSpec& spec);
Descriptor pointwise(cudnnPointwiseMode_t mode);
Descriptor operation_graph(const Target& target, std::span<const Descriptor> operations);

/// What the heuristic proposes, best first; nothing where the mode does not know the graph.
std::vector<Descriptor> engine_configs(const Target& target, const Descriptor& graph,
                                       cudnnBackendHeurMode_t mode);
/// Bit n is set when the engine has numerical note n (cudnnBackendNumericalNote_t).
std::uint32_t numerical_notes(const Descriptor& engine_config);

/// The number of the engine, which is its name among those of an operation; -1 where the library
/// does not say.
std::int64_t engine_number(const Descriptor& engine_config);

/// The plan, or none where the engine cannot do it on this device: then `why_not` says why.
std::optional<Descriptor> execution_plan(const Target& target, const Descriptor& engine_config,
                                         std::string& why_not);
std::int64_t workspace_bytes(const Descriptor& plan);

Descriptor variant_pack(std::span<const std::int64_t> ids, std::span<void* const> addresses,
                        void* workspace);

}  // namespace ringlet::cudnn_graph
