// The engine that cuDNN has chosen for a convolution, as a line for people.
#pragma once

#include <string>

#include "kernels/cuda/conv2d_graph.h"

namespace ringlet::cudnn_graph {

/// "conv2d_forward of x [..], ..: engine 62, tensor cores, 512 bytes of scratch memory". Between
/// are the numerical notes that the engine has of itself. "an engine" where it has no number.
std::string describe(const Conv2dKey& key, const Plan& plan);

}  // namespace ringlet::cudnn_graph
