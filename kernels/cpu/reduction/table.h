// What the files of this folder offer, each compiled for its instruction set.
#pragma once

#include <cstdint>

#include "kernels/device.h"
#include "kernels/reduce_op.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

struct ReduceArguments {
  const void* const* xs;  ///< [sources] arrays
  int sources;
  void* const* ys;  ///< [targets] arrays
  int targets;
  int divisor;
  bool streaming;
};

/// Reduces the elements [begin, end).
using ReduceFunction = void (*)(const ReduceArguments& arguments, std::int64_t begin,
                                std::int64_t end);

ReduceFunction portable_reduction(ReduceOp op, DType dtype);
ReduceFunction avx2_reduction(ReduceOp op, DType dtype);
ReduceFunction avx512_reduction(ReduceOp op, DType dtype);

/// Throws ContractError for a type that cannot be reduced.
ReduceFunction reduction_for(InstructionSet isa, ReduceOp op, DType dtype);

}  // namespace ringlet::impl
