// The kernels of a step that do nothing but pass over memory, at the shapes of LeNet's layers (and
// two larger ones), as a list for benchmarks. Their floor is the bytes that they must move.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/memory.h"

namespace ringlet::bench {

/// One call of a kernel, ready to be timed.
struct MemoryKernel {
  std::string name;
  std::function<void()> run;
  double bytes = 0;  ///< that it must read and write at least once
};

/// Tensors of one device, kept as long as the calls that work on them.
class TensorStore {
 public:
  explicit TensorStore(Device& device) : device_(device) {}

  Device& device() const { return device_; }
  /// f32 numbers in [-0.5, 0.5) that differ from element to element.
  View floats(const Shape& shape);
  /// The same as an activation of f32 or bf16, in this layout.
  View activations(const Shape& shape, DType dtype, Layout layout);
  /// i32 numbers in [0, `below`).
  View integers(const Shape& shape, std::int32_t below);
  /// u8, any.
  View bytes(const Shape& shape);

 private:
  View tensor(const Shape& shape, DType dtype, Layout layout = Layout::nchw);

  Device& device_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
};

/// Samples up to which batch norm is timed: the host makes its inputs, and of 4096 they have 10 GB.
inline constexpr std::int64_t kMostNormed = 256;

/// Ringlet's own kernels. `batch`: samples, at least 1. Those of batch norm are of images of
/// 64 x 32 x 32 in f32 and in bf16: nhwc on GPUs, on CPUs nchw.
std::vector<MemoryKernel> memory_kernels(TensorStore& store, std::int64_t batch);

/// What cuDNN offers for the same work, named "... (cuDNN)": pooling and softmax. Empty where this
/// build or `store`'s device has no cuDNN. Throws DeviceError where it should be there and is not.
std::vector<MemoryKernel> cudnn_memory_kernels(TensorStore& store, std::int64_t batch);

}  // namespace ringlet::bench
