#include <cstddef>
#include <cstring>

#include "kernels/cpu/reduction/loops.h"

namespace ringlet::impl {

namespace {

/// Stores like any others.
struct PlainStores {
  static void line(std::byte* to, const std::byte* from) { std::memcpy(to, from, kLine); }
  static void end() {}
};

}  // namespace

ReduceFunction portable_reduction(ReduceOp op, DType dtype) {
  return find_reduction<PlainStores>(op, dtype);
}

ReduceFunction reduction_for(InstructionSet, ReduceOp op, DType dtype) {
  return portable_reduction(op, dtype);
}

}  // namespace ringlet::impl
