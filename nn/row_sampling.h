// RowSampling: which rows of a parameter a step works on, where it does not work on all: those that
// the step's labels name, and some others, drawn anew in each step. So a loss over millions of
// classes costs what a part of them costs. Source: An et al., "Partial FC", 2021.
//
// Rows are cut into logical shards, as equal as possible, the larger ones first. Of each shard of n
// rows a step has floor(rate * n): first those that are named, then others in the order of a
// permutation that (seed, step, shard) chooses; if more are named, exactly these. So which rows
// they are is a function of (seed, step, labels): the same on any number of ranks, and after any
// resumption. Each rank works on those of them that it holds (placement.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nn/placement.h"

namespace ringlet::nn {

struct RowSampling {
  double rate = 1;              ///< from 0 to 1
  int shards = 1;               ///< logical ones
  std::int64_t most_named = 0;  ///< rows that a step names at most
  std::uint64_t seed = 0;

  /// Logical shard `index` of `all` rows.
  Rows shard(std::int64_t all, int index) const;
  /// Rows that a step has of a shard of `size`, unless more are named.
  std::int64_t drawn(std::int64_t size) const;
  /// Rows of `part` that a step has at most.
  std::int64_t room(std::int64_t all, const Rows& part) const;
  bool operator==(const RowSampling&) const = default;
};

/// Which rows of a rank's gradient are of its part `index`, of a parameter of `all` rows: those
/// that it holds, or as many as there is room for in a step.
Rows gradient_rows_of(const std::optional<RowSampling>& sampling, std::int64_t all,
                      const AxisPosition& position, int index);

/// The rows of each step that a rank holds.
class RowSampler {
 public:
  /// `all`: rows of the parameter; the rank's are those of `position`.
  RowSampler(const RowSampling& sampling, std::int64_t all, const AxisPosition& position);

  /// Of step `step`, whose labels are `named` (of all ranks, in any order, any of them often;
  /// those that are no row are passed over): the rank's rows, counted from its first one, part by
  /// part in ascending order, and behind those of a part -1 up to its room. It stays until the next
  /// call.
  std::span<const std::int32_t> list(std::int64_t step, std::span<const std::int32_t> named);
  /// The first rows of each part, as many as there is room for.
  std::span<const std::int32_t> first_rows();

 private:
  void mark(std::int64_t step, int shard, std::span<const std::int32_t> named);

  RowSampling sampling_;
  std::int64_t all_;
  std::vector<Rows> parts_;           // of this rank
  std::int64_t held_ = 0;             // its first row
  std::vector<std::int64_t> begins_;  // of the parts in the list
  std::vector<std::int64_t> filled_;  // of the parts
  std::vector<std::uint64_t> marks_;  // a bit for each row of a shard
  std::vector<std::int32_t> list_;
};

}  // namespace ringlet::nn
