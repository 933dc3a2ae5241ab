// Flat: all that a view stores, as one row.
#pragma once

#include <cstdint>

#include "kernels/tensor.h"

namespace ringlet::comm {

/// Small enough to be captured by a Task, and three numbers to hand on where a view is a copy of
/// seven: a short all-reduce feels that.
struct Flat {
  void* data;
  std::int64_t count;
  DType dtype;

  std::int64_t bytes() const { return count * size_of(dtype); }
  View view() const { return {data, {count}, dtype}; }
};

inline Flat flat(const View& data) { return {data.address(), data.storage(), data.dtype()}; }

}  // namespace ringlet::comm
