// cuDNN's pooling and softmax, for comparison alone: docs/architecture.md says why Ringlet's own
// are used. They are calls of cuDNN's older API (those for pooling are deprecated), opened here.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn_ops.h>

#include <array>
#include <type_traits>
#include <utility>

#include "base/shared_library.h"
#include "bench/kernels/memory_kernels.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cudnn.h"

namespace ringlet::bench {

namespace {

// clang-format off
#define RINGLET_OLD_CUDNN_FUNCTIONS(F)                                                             \
  F(cudnnCreateTensorDescriptor) F(cudnnDestroyTensorDescriptor) F(cudnnSetTensor4dDescriptor)     \
  F(cudnnCreatePoolingDescriptor) F(cudnnDestroyPoolingDescriptor) F(cudnnSetPooling2dDescriptor)  \
  F(cudnnPoolingForward) F(cudnnPoolingBackward) F(cudnnSoftmaxForward) F(cudnnSoftmaxBackward)
// clang-format on

struct OldCudnnFunctions {
#define RINGLET_DECLARE(name) decltype(&::name) name;  // NOLINT: a member has no parentheses
  RINGLET_OLD_CUDNN_FUNCTIONS(RINGLET_DECLARE)
#undef RINGLET_DECLARE
};

OldCudnnFunctions open_old_cudnn() {
  const std::string file = "libcudnn.so." + std::to_string(CUDNN_MAJOR);
  const SharedLibrary library(file.c_str(), "install cuDNN 9 for this CUDA");
  OldCudnnFunctions functions{};
#define RINGLET_FIND(name) \
  functions.name = library.function<std::remove_pointer_t<decltype(functions.name)>>(#name);
  RINGLET_OLD_CUDNN_FUNCTIONS(RINGLET_FIND)
#undef RINGLET_FIND
  return functions;
}

const OldCudnnFunctions& old_cudnn() {
  static const OldCudnnFunctions functions = open_old_cudnn();
  return functions;
}

/// A handle on the device's compute stream.
class Handle {
 public:
  explicit Handle(CudaStream& stream) {
    CUstream_st* const queue = stream.handle();  // makes the device current
    check_cudnn(cudnn().cudnnCreate(&handle_), "cudnnCreate");
    check_cudnn(cudnn().cudnnSetStream(handle_, queue), "cudnnSetStream");
  }
  ~Handle() { cudnn().cudnnDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

/// A dense f32 tensor [N, C, H, W] as cuDNN's older API knows it.
class TensorDescriptor {
 public:
  explicit TensorDescriptor(const std::array<std::int64_t, 4>& extents) {
    check_cudnn(old_cudnn().cudnnCreateTensorDescriptor(&descriptor_),
                "cudnnCreateTensorDescriptor");
    const auto extent = [&](std::size_t i) { return static_cast<int>(extents[i]); };
    check_cudnn(
        old_cudnn().cudnnSetTensor4dDescriptor(descriptor_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                               extent(0), extent(1), extent(2), extent(3)),
        "cudnnSetTensor4dDescriptor");
  }
  ~TensorDescriptor() { old_cudnn().cudnnDestroyTensorDescriptor(descriptor_); }
  TensorDescriptor(const TensorDescriptor&) = delete;
  TensorDescriptor& operator=(const TensorDescriptor&) = delete;
  cudnnTensorDescriptor_t get() const { return descriptor_; }

 private:
  cudnnTensorDescriptor_t descriptor_ = nullptr;
};

/// Windows of 2 x 2 that touch.
class PoolingDescriptor {
 public:
  explicit PoolingDescriptor(cudnnPoolingMode_t mode) {
    check_cudnn(old_cudnn().cudnnCreatePoolingDescriptor(&descriptor_),
                "cudnnCreatePoolingDescriptor");
    check_cudnn(old_cudnn().cudnnSetPooling2dDescriptor(descriptor_, mode, CUDNN_PROPAGATE_NAN, 2,
                                                        2, 0, 0, 2, 2),
                "cudnnSetPooling2dDescriptor");
  }
  ~PoolingDescriptor() { old_cudnn().cudnnDestroyPoolingDescriptor(descriptor_); }
  PoolingDescriptor(const PoolingDescriptor&) = delete;
  PoolingDescriptor& operator=(const PoolingDescriptor&) = delete;
  cudnnPoolingDescriptor_t get() const { return descriptor_; }

 private:
  cudnnPoolingDescriptor_t descriptor_ = nullptr;
};

constexpr float kOne = 1, kZero = 0;

using Kernels = std::vector<MemoryKernel>;

/// `bytes`: those that Ringlet's kernel for the same work must move, so that rows compare.
void add_pooling(TensorStore& store, std::int64_t batch, const std::shared_ptr<Handle>& handle,
                 cudnnPoolingMode_t mode, const std::string& name, Kernels& kernels) {
  const auto pooling = std::make_shared<PoolingDescriptor>(mode);
  const auto large = std::make_shared<TensorDescriptor>(std::array{batch, 20L, 26L, 26L});
  const auto small = std::make_shared<TensorDescriptor>(std::array{batch, 20L, 13L, 13L});
  const View x = store.floats({batch, 20, 26, 26}), dx = store.floats({batch, 20, 26, 26});
  const View y = store.floats({batch, 20, 13, 13}), dy = store.floats({batch, 20, 13, 13});
  const auto bytes = static_cast<double>(x.bytes() + y.bytes());
  kernels.push_back({name + " forward (cuDNN)",
                     [=] {
                       check_cudnn(old_cudnn().cudnnPoolingForward(handle->get(), pooling->get(),
                                                                   &kOne, large->get(), x.data(),
                                                                   &kZero, small->get(), y.data()),
                                   "cudnnPoolingForward");
                     },
                     bytes});
  kernels.push_back({name + " backward (cuDNN)",
                     [=] {
                       check_cudnn(old_cudnn().cudnnPoolingBackward(
                                       handle->get(), pooling->get(), &kOne, small->get(), y.data(),
                                       small->get(), dy.data(), large->get(), x.data(), &kZero,
                                       large->get(), dx.data()),
                                   "cudnnPoolingBackward");
                     },
                     bytes});
}

void add_softmax(TensorStore& store, std::int64_t batch, std::int64_t classes,
                 const std::shared_ptr<Handle>& handle, Kernels& kernels) {
  const auto rows = std::make_shared<TensorDescriptor>(std::array{batch, classes, 1L, 1L});
  const View z = store.floats({batch, classes}), p = store.floats({batch, classes});
  const View dp = store.floats({batch, classes}), dz = store.floats({batch, classes});
  const std::string of = " of " + std::to_string(classes);
  kernels.push_back({"softmax alone forward" + of + " (cuDNN)",
                     [=] {
                       check_cudnn(
                           old_cudnn().cudnnSoftmaxForward(
                               handle->get(), CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE,
                               &kOne, rows->get(), z.data(), &kZero, rows->get(), p.data()),
                           "cudnnSoftmaxForward");
                     },
                     static_cast<double>(2 * z.bytes())});
  kernels.push_back({"softmax alone backward" + of + " (cuDNN)",
                     [=] {
                       check_cudnn(old_cudnn().cudnnSoftmaxBackward(
                                       handle->get(), CUDNN_SOFTMAX_ACCURATE,
                                       CUDNN_SOFTMAX_MODE_INSTANCE, &kOne, rows->get(), p.data(),
                                       rows->get(), dp.data(), &kZero, rows->get(), dz.data()),
                                   "cudnnSoftmaxBackward");
                     },
                     static_cast<double>(3 * z.bytes())});
}

}  // namespace

std::vector<MemoryKernel> cudnn_memory_kernels(TensorStore& store, std::int64_t batch) {
  Kernels kernels;
  if (store.device().id().kind != DeviceKind::cuda) return kernels;
  const auto handle = std::make_shared<Handle>(static_cast<CudaStream&>(store.device().compute()));
  add_pooling(store, batch, handle, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, "average pool",
              kernels);
  add_pooling(store, batch, handle, CUDNN_POOLING_MAX, "maximum pool", kernels);
  add_softmax(store, batch, 10, handle, kernels);
  add_softmax(store, batch, 1000, handle, kernels);
  return kernels;
}

}  // namespace ringlet::bench
