// The functions of this folder, each compiled for its instruction set.
#pragma once

#include <cstdint>

#include "kernels/device.h"
#include "kernels/reduce.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

struct ReduceArguments {
  const void* const* xs;  ///< [sources] arrays
  int sources;
  void* const* ys;  ///< [targets] arrays
  int targets;
  int divisor;
  Stores stores;
};

/// Reduces the elements [begin, end).
using ReduceFunction = void (*)(const ReduceArguments& arguments, std::int64_t begin,
                                std::int64_t end);

ReduceFunction portable_reduction(ReduceOp op, DType dtype);
ReduceFunction avx2_reduction(ReduceOp op, DType dtype);
ReduceFunction avx512_reduction(ReduceOp op, DType dtype);

/// Throws ContractError for a type that cannot be reduced.
ReduceFunction reduction_for(InstructionSet isa, ReduceOp op, DType dtype);

/// y[i] = x[i] as y's type, for i in [begin, end).
using CastFunction = void (*)(const void* x, void* y, std::int64_t begin, std::int64_t end);

CastFunction portable_cast(DType from, DType to);
CastFunction avx2_cast(DType from, DType to);
CastFunction avx512_cast(DType from, DType to);

/// Throws ContractError but for f32 to a narrow float and back.
CastFunction cast_for(InstructionSet isa, DType from, DType to);

}  // namespace ringlet::impl
