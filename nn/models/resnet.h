// Residual networks (He et al., CVPR 2016), with torchvision's names, layers and initialisation:
// convolutions N(0, 2 / (K K O)), norms 1 and 0, PyTorch's default for the linear layer. PyTorch
// and torchvision load their weights, and they load torchvision's.
//
//   resnet18, 34, 50  7x7 convolution with stride 2, 3x3 maximum pooling with stride 2, four stages
//                     of 64, 128, 256 and 512 channels (four times as many at the end of a block of
//                     resnet50). 11,689,512, 21,797,672 and 25,557,032 parameters for 3 channels
//                     and 1000 outputs
//   resnet18-cifar    the same stages behind a 3x3 convolution, without pooling, for images of some
//                     32 pixels. 11,173,962 parameters for 10 outputs
//   resnet20          the paper's network for CIFAR-10: 3x3 convolution, three stages of three
//                     blocks of 16, 32 and 64 channels. Where a stage halves the image, the
//                     shortcut is a 1x1 convolution with a norm (the paper's option B). 272,474
//                     parameters
#pragma once

#include <memory>

#include "nn/models/model.h"

namespace ringlet::nn {

std::unique_ptr<Layer> make_resnet18(const ModelInput& input);
std::unique_ptr<Layer> make_resnet34(const ModelInput& input);
std::unique_ptr<Layer> make_resnet50(const ModelInput& input);
std::unique_ptr<Layer> make_resnet18_cifar(const ModelInput& input);
std::unique_ptr<Layer> make_resnet20(const ModelInput& input);

}  // namespace ringlet::nn
