#include <cstddef>
#include <cstring>

#include "kernels/cpu/reduction/cast_loops.h"
#include "kernels/cpu/reduction/loops.h"

namespace ringlet::impl {

namespace {

/// Stores like any others.
struct PlainStores {
  static void line(std::byte* to, const std::byte* from) { std::memcpy(to, from, kLine); }
  static void end() {}
  static void across(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

ReduceFunction portable_reduction(ReduceOp op, DType dtype) {
  return find_reduction<PlainStores>(op, dtype);
}

ReduceFunction reduction_for(InstructionSet, ReduceOp op, DType dtype) {
  return portable_reduction(op, dtype);
}

CastFunction portable_cast(DType from, DType to) { return find_cast<PlainStores>(from, to); }

CastFunction cast_for(InstructionSet, DType from, DType to) { return portable_cast(from, to); }

}  // namespace ringlet::impl
