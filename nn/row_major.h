// A parameter's numbers on the host, row-major as files have them, whatever its layout on the
// device.
#pragma once

#include <vector>

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet::nn {

/// f32. Blocks the host.
std::vector<float> to_rows(Stream& stream, const ConstView& view);
/// `rows`: as many as `view` has elements, f32. Blocks the host.
void from_rows(Stream& stream, const float* rows, const View& view);

}  // namespace ringlet::nn
