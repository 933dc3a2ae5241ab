// CUDA's implementations of kernels/elementwise.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/elementwise.h"

namespace ringlet::impl {

void fill(CudaStream& stream, float value, const View& y);
void accumulate(CudaStream& stream, const ConstView& x, const View& y);
void add(CudaStream& stream, const ConstView& a, const ConstView& b, const View& y);
void scale(CudaStream& stream, float alpha, const ConstView& x, float beta, const View& y);
void copy(CudaStream& stream, const ConstView& x, const View& y);

}  // namespace ringlet::impl
