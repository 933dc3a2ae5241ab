// The kernels of one SGD step of LeNet as a list, for benchmarks: conv 1 -> 20 3x3 on 28x28, ReLU,
// average pooling 2, conv 20 -> 50 5x5, ReLU, average pooling 2, linear 800 -> 128, ReLU, linear
// 128 -> 10; forward and every gradient but that of the images.
#pragma once

#include "bench/kernels/kernel_calls.h"

namespace ringlet::bench {

/// `fused` uses conv2d_relu_avg_pool2d, for the layout lanes alone.
KernelCalls make_lenet_layers(Device& device, std::int64_t batch, Layout layout, bool fused);

}  // namespace ringlet::bench
