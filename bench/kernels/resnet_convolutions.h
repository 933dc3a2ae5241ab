// The convolutions of ResNet-18, each once, for benchmarks: of the kind for 32 x 32 images
// ("cifar") and of torchvision's for 224 x 224; forward and both gradients.
#pragma once

#include "bench/kernels/kernel_calls.h"

namespace ringlet::bench {

KernelCalls make_resnet_convolutions(Device& device, std::int64_t batch, Layout layout,
                                     bool of_224);

}  // namespace ringlet::bench
