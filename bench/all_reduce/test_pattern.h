// TestPattern: the input of each rank of a benchmark, and the exact result, to the last bit.
//
// The numbers are whole and small enough that every order of additions is exact in the element's
// type. With mean they are multiples of the number of ranks, so that the division is exact as well;
// with min and max some are negative.
//
// Element j of rank r in iteration i is table_r[(j + i) mod 1021]. Each iteration has other
// numbers, so a result that was left from the one before is wrong nearly everywhere. 1021 is prime,
// so a chunk at the wrong offset is wrong too. Writing and comparing are copies and comparisons of
// a table that stays in the first-level cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/reduce_op.h"
#include "kernels/tensor.h"

namespace ringlet::bench {

class TestPattern {
 public:
  /// For f32, f16, bf16 or i32. Throws ContractError where sums over so many ranks are not exact in
  /// the type.
  TestPattern(DType type, ReduceOp op, int rank, int ranks);

  /// Writes this rank's input of `iteration`; `data` holds `bytes`, whole elements.
  void write_input(std::int64_t iteration, void* data, std::int64_t bytes) const;

  /// Elements of `data` that are not the exact result of `iteration`.
  std::int64_t count_wrong(std::int64_t iteration, const void* data, std::int64_t bytes) const;

 private:
  std::vector<std::byte> table_of(const std::vector<std::int64_t>& period) const;
  /// Where `iteration` begins in a table, in bytes.
  std::int64_t offset_of(std::int64_t iteration) const;

  DType type_;
  std::int64_t element_bytes_;
  std::vector<std::byte> input_, expected_;  // several periods, see table_of()
};

}  // namespace ringlet::bench
