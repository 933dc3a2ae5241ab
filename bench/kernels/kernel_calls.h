// Calls of kernels as a list, for benchmarks, with the tensors that they work on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/memory.h"

namespace ringlet::bench {

/// One call of a kernel, ready to be timed.
struct KernelCall {
  std::string name;
  double flops = 0;  ///< of its operation as a textbook counts it, before anything is left out
  std::function<void()> run;
};

struct KernelCalls {
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<KernelCall> calls;
  double flops() const;
  void run() const;
};

struct ValueAndGradient {
  View value, gradient;
};

/// Adds calls and makes their tensors. Activations have `batch` samples, and all hold numbers in
/// [-0.5, 0.5) that differ from element to element.
class KernelCallsBuilder {
 public:
  KernelCallsBuilder(Device& device, std::int64_t batch, Layout layout, KernelCalls& calls)
      : device_(device), batch_(batch), layout_(layout), calls_(calls) {}

  View activation(Shape shape) { return tensor(shape.with_batch(batch_), layout_, DType::f32); }
  View weight(Shape shape) { return tensor(shape, Layout::nchw, DType::f32); }
  ValueAndGradient activation_pair(Shape shape) { return {activation(shape), activation(shape)}; }
  ValueAndGradient weight_pair(Shape shape) { return {weight(shape), weight(shape)}; }
  View mask(const Shape& shape) { return tensor(shape, Layout::nchw, DType::u8); }
  View winner(const Shape& shape) { return tensor(shape, layout_, DType::i32); }
  Stream& stream() { return device_.compute(); }

  void add(const char* name, double flops, std::function<void()> run);

 private:
  View tensor(const Shape& shape, Layout layout, DType dtype);

  Device& device_;
  std::int64_t batch_;
  Layout layout_;
  KernelCalls& calls_;
};

/// One SGD step of LeNet: conv 1 -> 20 3x3 on 28x28, ReLU, average pooling 2, conv 20 -> 50 5x5,
/// ReLU, average pooling 2, linear 800 -> 128, ReLU, linear 128 -> 10; forward and every gradient
/// but that of the images. `fused` uses conv2d_relu_avg_pool2d, for the layout lanes alone.
KernelCalls make_lenet_layers(Device& device, std::int64_t batch, Layout layout, bool fused);

/// The convolutions of ResNet-18, each once: of the kind for 32 x 32 images ("cifar") and of
/// torchvision's for 224 x 224; forward and both gradients.
KernelCalls make_resnet_convolutions(Device& device, std::int64_t batch, Layout layout,
                                     bool of_224);

}  // namespace ringlet::bench
