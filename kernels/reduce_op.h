// ReduceOp: how several numbers become one.
#pragma once

#include <cstdint>

namespace ringlet {

enum class ReduceOp : std::uint8_t { sum, mean, min, max };

inline constexpr ReduceOp kReduceOps[] = {ReduceOp::sum, ReduceOp::mean, ReduceOp::min,
                                          ReduceOp::max};

constexpr const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::mean:
      return "mean";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
  }
  return "?";
}

}  // namespace ringlet
