// The CPU's implementations of kernels/elementwise.h. The contract has been checked.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/elementwise.h"

namespace ringlet::impl {

void fill(CpuStream& stream, float value, const View& y);
void copy(CpuStream& stream, const ConstView& x, const View& y);
void accumulate(CpuStream& stream, const ConstView& x, const View& y);
void add(CpuStream& stream, const ConstView& a, const ConstView& b, const View& y);
void scale(CpuStream& stream, float alpha, const ConstView& x, float beta, const View& y);

}  // namespace ringlet::impl
