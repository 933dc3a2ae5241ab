// TestPattern: the input of each rank of a benchmark, and the exact result, to the last bit.
//
// Of a collective that reduces:
//
// The numbers are whole and small enough that every order of additions is exact in the element's
// type, and no smaller: f32's of two ranks go to 2^23, so what is sent or summed in fewer bits is
// wrong nearly everywhere. With mean they are multiples of the number of ranks, so that the
// division is exact as well; with min and max some are negative.
//
// Element j of rank r in iteration i is table_r[(j + i) mod 1021]. Each iteration has other
// numbers, so a result that was left from the one before is wrong nearly everywhere. 1021 is prime,
// so a chunk at the wrong offset is wrong too. Writing and comparing are copies and comparisons of
// a table that stays in the first-level cache.
//
// Of one that only moves elements all ranks have one table, of any bits that are finite. Element j
// of rank r in iteration i is table[(j + i + 509 r) mod 1021]: so each rank knows what every other
// one has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/reduce_op.h"
#include "kernels/tensor.h"

namespace ringlet::bench {

/// Throws ContractError where sums over so many ranks are not exact in the type, however small the
/// numbers.
void require_exact(DType type, ReduceOp op, int ranks);

class TestPattern {
 public:
  /// For f32, f16, bf16 or i32; throws ContractError for others. Its expected result is exact where
  /// require_exact() says so.
  TestPattern(DType type, ReduceOp op, int rank, int ranks);
  /// For a collective that only moves elements, of the same types.
  TestPattern(DType type, int rank);

  /// Writes this rank's input of `iteration`; `data` holds `bytes`, whole elements.
  void write_input(std::int64_t iteration, void* data, std::int64_t bytes) const;

  /// Elements of `data` that are not those of the exact reduction of `iteration`, from its element
  /// `first` on.
  std::int64_t count_wrong(std::int64_t iteration, const void* data, std::int64_t bytes,
                           std::int64_t first = 0) const;
  /// Elements of `data` that are not those of `rank`'s input of `iteration`, from its element
  /// `first` on; of a collective that only moves elements.
  std::int64_t count_wrong_of(int rank, std::int64_t iteration, const void* data,
                              std::int64_t bytes, std::int64_t first) const;

 private:
  /// Of the bits of each element of a period.
  std::vector<std::byte> table_of(const std::vector<std::uint32_t>& period) const;
  /// Where what is `elements` from a table's beginning lies in it, in bytes.
  std::int64_t offset_of(std::int64_t elements) const;
  std::int64_t count_unlike(const std::byte* table, const void* data, std::int64_t bytes) const;

  std::int64_t element_bytes_;
  std::int64_t shift_ = 0;  // of this rank in the table that all share, in elements
  std::vector<std::byte> input_, expected_;  // several periods, see table_of()
};

}  // namespace ringlet::bench
