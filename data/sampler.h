// The order in which an epoch visits the samples. It is defined in kernels: a GPU that has the data
// set in its memory gathers its batches itself, by the same arithmetic.
#pragma once

#include "kernels/sampling.h"

namespace ringlet::data {

using ringlet::mix64;
using ringlet::Permutation;
using ringlet::PixelScale;
using ringlet::Sampler;

}  // namespace ringlet::data
