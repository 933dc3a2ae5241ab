// The kernels of models as lists, for benchmarks.
#pragma once

#include "bench/kernels/kernel_calls.h"

namespace ringlet::bench {

/// One SGD step of LeNet: conv 1 -> 20 3x3 on 28x28, ReLU, average pooling 2, conv 20 -> 50 5x5,
/// ReLU, average pooling 2, linear 800 -> 128, ReLU, linear 128 -> 10; forward and every gradient
/// but that of the images. `fused` uses conv2d_relu_avg_pool2d, for the layout lanes alone.
KernelCalls make_lenet_layers(Device& device, std::int64_t batch, Layout layout, bool fused);

/// The convolutions of ResNet-18, each once: of the kind for 32 x 32 images ("cifar") and of
/// torchvision's for 224 x 224; forward and both gradients.
KernelCalls make_resnet_convolutions(Device& device, std::int64_t batch, Layout layout,
                                     bool of_224);

}  // namespace ringlet::bench
