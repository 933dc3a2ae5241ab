// The residual networks that face embeddings are trained with (Deng et al., "ArcFace", CVPR 2019),
// with the names and the initialisation of InsightFace's iresnet18 to iresnet100: convolutions
// N(0, 0.1^2), norms 1 and 0, slopes 0.25, PyTorch's default for the linear layer. Its weights load
// here, and ours load there with strict load_state_dict.
//
//   stem    3x3 convolution of 64 channels, norm, PReLU
//   block   norm, 3x3 convolution, norm, PReLU, 3x3 convolution (stride), norm; then x is added, or
//           where the stage begins its 1x1 convolution with a norm. Nothing stands behind the sum
//   stages  64, 128, 256 and 512 channels; each halves the image at its beginning, 112 to 7
//   tail    norm, flatten, linear layer, norm ("features") whose weight is 1 and is not learnt
//
// Images of any size: the linear layer takes 512 ceil(H/16) ceil(W/16) numbers. In bf16 and f16 it
// and what follows are f32.
//
// Parameters for 3 channels, 112 x 112 and 512 outputs, with the ones in `features`: 24,025,600,
// 34,139,328, 43,590,848 and 65,156,160.
#pragma once

#include <memory>

#include "nn/models/model.h"

namespace ringlet::nn {

std::unique_ptr<Layer> make_iresnet18(const ModelInput& input);
std::unique_ptr<Layer> make_iresnet34(const ModelInput& input);
std::unique_ptr<Layer> make_iresnet50(const ModelInput& input);
std::unique_ptr<Layer> make_iresnet100(const ModelInput& input);

}  // namespace ringlet::nn
