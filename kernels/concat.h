// Tensors side by side along their channels, or features: the second extent.
//
//   y[:, first : first + C]  = x                              for each x in turn
//   dx = beta * dx + dy[:, first : first + C]
//
// A call moves one of the tensors, so that there may be any number of them.
#pragma once

#include <cstdint>

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// Activations (kernels/tensor.h) of one type and layout; x [N, C] or [N, C, H, W], y the same but
/// for more channels, of which x becomes those from `first` on. Lanes beyond N are copied too.
void concat_forward(Stream& stream, ConstView x, std::int64_t first, View y);
/// dy like y, dx like x.
void concat_backward(Stream& stream, ConstView dy, std::int64_t first, float beta, View dx);

}  // namespace ringlet
