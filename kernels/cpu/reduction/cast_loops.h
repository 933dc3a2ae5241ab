// The loop of kernels/cast.h, as a template over the instruction set whose file compiles it: its
// streaming stores (loops.h), which no other file has.
#pragma once

#include <cstdint>

#include "kernels/cpu/reduction/table.h"
#include "kernels/reduction.h"

namespace ringlet::impl {

template <class InstructionSet, class From, class To>
void cast_range(const void* x, void* y, std::int64_t begin, std::int64_t end) {
  const auto* __restrict from = static_cast<const From*>(x);
  auto* __restrict to = static_cast<To*>(y);
  for (std::int64_t i = begin; i < end; ++i) {
    to[i] = reduction::round_to<To>(reduction::load(from[i]));
  }
}

/// The function of an instruction set.
template <class InstructionSet>
CastFunction find_cast(DType from, DType to) {
  CastFunction function = nullptr;
  reduction::visit_cast(from, to, [&]<class From, class To>(From, To) {
    function = &cast_range<InstructionSet, From, To>;
  });
  return function;
}

}  // namespace ringlet::impl
