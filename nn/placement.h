// Placement: which ranks hold a parameter's numbers.
//
//   replicated   all, alike
//   rows         its rows (dimension 0) are cut over the ranks of an axis: each has some, or none
//   stage        those of one stage of the model, alike
//
// Rows are cut into parts as equal as possible, the larger ones first, and a rank has a contiguous
// range of whole parts. There are as many parts as ranks; in exact mode, as many as logical shards,
// however many ranks there are: so every product has the same shapes for any number of ranks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringlet::nn {

enum class Placement : std::uint8_t { replicated, rows, stage };

/// Rows [begin, end).
struct Rows {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Rows&) const = default;
};

/// Where a rank stands among those that rows are cut over.
struct AxisPosition {
  int rank = 0;
  int ranks = 1;
  /// Exact mode: logical shards of a step's samples, a multiple of the ranks. Gradients of each are
  /// kept apart, and added in one tree. 0: not exact.
  int shards = 0;
  /// Exact mode: passes of each of these shards.
  int accumulate = 1;

  /// Nothing is cut, and nobody has to be asked.
  bool alone() const { return ranks == 1 && shards == 0; }
  int parts() const { return shards > 0 ? shards : ranks; }
  int parts_of_rank() const { return parts() / ranks; }
  /// Exact mode: of a rank in a step.
  int passes() const { return parts_of_rank() * accumulate; }
  /// Part `index` of `rows` rows.
  Rows part(std::int64_t rows, int index) const {
    const std::int64_t small = rows / parts(), larger = rows % parts();
    const std::int64_t begin = index * small + std::min<std::int64_t>(index, larger);
    return {begin, begin + small + (index < larger ? 1 : 0)};
  }
  /// What rank `of` has of `rows` rows.
  Rows held(std::int64_t rows, int of) const {
    const int first = of * parts_of_rank();
    return {part(rows, first).begin, part(rows, first + parts_of_rank() - 1).end};
  }
  bool operator==(const AxisPosition&) const = default;
};

}  // namespace ringlet::nn
