// Copies between host memory and device memory, for weights, batches and numbers to be shown.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// y = the y.bytes() bytes at `host`, in y's own layout. The host memory may be reused at once.
void copy_from_host(Stream& stream, const void* host, View y);
/// Writes the x.bytes() bytes of x to `host`; returns when they are there.
void copy_to_host(Stream& stream, ConstView x, void* host);
/// The one element of an f32 view; blocks until it is computed.
float read_scalar(Stream& stream, ConstView x);

}  // namespace ringlet
