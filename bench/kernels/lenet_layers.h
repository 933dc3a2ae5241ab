// The kernels of one SGD step of LeNet as a list, for benchmarks: conv 1 -> 20 3x3 on 28x28, ReLU,
// average pooling 2, conv 20 -> 50 5x5, ReLU, average pooling 2, linear 800 -> 128, ReLU, linear
// 128 -> 10; forward and every gradient but that of the images.
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

/// Owns the tensors that the calls work on.
struct LenetLayers {
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<KernelCall> calls;
  double flops() const;
  void run() const;
};

/// `fused` uses conv2d_relu_avg_pool2d, for the layout lanes alone.
LenetLayers make_lenet_layers(Device& device, std::int64_t batch, Layout layout, bool fused);

}  // namespace ringlet::bench
