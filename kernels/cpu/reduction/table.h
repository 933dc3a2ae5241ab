// The functions of this folder, each compiled for its instruction set.
#pragma once

#include <cstdint>

#include "base/instruction_set.h"
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

/// y[i] = x[i] as y's type, for i in [begin, end).
using CastFunction = void (*)(const void* x, void* y, std::int64_t begin, std::int64_t end);

/// The loops of an instruction set.
struct ReductionLoops {
  /// Throws ContractError for a type that cannot be reduced.
  ReduceFunction (*reduce)(ReduceOp op, DType dtype);
  /// Throws ContractError but for f32 to a narrow float and back.
  CastFunction (*cast)(DType from, DType to);
};

ReductionLoops loops_of(PortableSet);
ReductionLoops loops_of(NeonSet);
ReductionLoops loops_of(Avx2Set);
ReductionLoops loops_of(Avx512Set);

}  // namespace ringlet::impl
