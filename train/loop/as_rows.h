// A model's outputs in host memory.
#pragma once

#include <vector>

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet::train {

/// f32 [n, K] of any layout as rows, [n, K] row-major. Waits for the stream.
std::vector<float> as_rows(Stream& stream, const ConstView& outputs);

}  // namespace ringlet::train
