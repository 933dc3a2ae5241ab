#include "nn/row_sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/sampling.h"

namespace ringlet::nn {

namespace {

constexpr std::int64_t kBits = 64;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

Rows common(const Rows& a, const Rows& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace

Rows RowSampling::shard(std::int64_t all, int index) const {
  return AxisPosition{.ranks = shards}.part(all, index);
}

std::int64_t RowSampling::drawn(std::int64_t size) const {
  // A rate such as 0.29 is a little less than what was written, and 29 of 100 are meant.
  constexpr double kAbove = 1 + 1e-12;
  return std::min(size, static_cast<std::int64_t>(rate * static_cast<double>(size) * kAbove));
}

std::int64_t RowSampling::room(std::int64_t all, const Rows& part) const {
  std::int64_t rows = 0;
  for (int index = 0; index < shards; ++index) {
    const Rows of_shard = shard(all, index);
    const std::int64_t most =
        std::max(drawn(of_shard.size()), std::min(most_named, of_shard.size()));
    rows += std::min(most, common(of_shard, part).size());
  }
  return rows;
}

Rows gradient_rows_of(const std::optional<RowSampling>& sampling, std::int64_t all,
                      const AxisPosition& position, int index) {
  const int first = position.rank * position.parts_of_rank();
  if (!sampling) {
    const std::int64_t begin = position.part(all, first).begin;
    const Rows part = position.part(all, first + index);
    return {part.begin - begin, part.end - begin};
  }
  Rows rows;
  for (int i = 0; i <= index; ++i) {
    rows = {rows.end, rows.end + sampling->room(all, position.part(all, first + i))};
  }
  return rows;
}

RowSampler::RowSampler(const RowSampling& sampling, std::int64_t all, const AxisPosition& position)
    : sampling_(sampling), all_(all), held_(position.held(all, position.rank).begin) {
  for (int index = 0; index < position.parts_of_rank(); ++index) {
    const Rows listed = gradient_rows_of(sampling, all, position, index);
    parts_.push_back(position.part(all, position.rank * position.parts_of_rank() + index));
    begins_.push_back(listed.begin);
    list_.resize(at(listed.end));
  }
  filled_.resize(parts_.size());
}

std::span<const std::int32_t> RowSampler::first_rows() {
  std::fill(list_.begin(), list_.end(), -1);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const std::int64_t end = part + 1 < parts_.size() ? begins_[part + 1] : std::ssize(list_);
    for (std::int64_t i = begins_[part]; i < end; ++i) {
      list_[at(i)] = static_cast<std::int32_t>(parts_[part].begin - held_ + i - begins_[part]);
    }
  }
  return list_;
}

/// Marks the rows of a shard that the step has.
void RowSampler::mark(std::int64_t step, int shard, std::span<const std::int32_t> named) {
  const Rows rows = sampling_.shard(all_, shard);
  marks_.assign(at((rows.size() + kBits - 1) / kBits), 0);
  std::int64_t marked = 0;
  const auto mark_one = [&](std::int64_t row) {
    std::uint64_t& word = marks_[at(row / kBits)];
    const std::uint64_t bit = std::uint64_t{1} << (row % kBits);
    if ((word & bit) == 0) ++marked;
    word |= bit;
  };
  for (const std::int32_t row : named) {
    if (row >= rows.begin && row < rows.end) mark_one(row - rows.begin);
  }
  const std::int64_t wanted = sampling_.drawn(rows.size());
  if (marked >= wanted) return;
  const Permutation order(rows.size(),
                          mix64(sampling_.seed ^ mix64(static_cast<std::uint64_t>(step)) ^
                                static_cast<std::uint64_t>(shard)));
  std::int64_t i = 0;
  while (marked < wanted) mark_one(order(i++));
}

std::span<const std::int32_t> RowSampler::list(std::int64_t step,
                                               std::span<const std::int32_t> named) {
  std::fill(list_.begin(), list_.end(), -1);
  filled_ = begins_;
  for (int shard = 0; shard < sampling_.shards; ++shard) {
    const Rows rows = sampling_.shard(all_, shard);
    const Rows held = common(rows, {parts_.front().begin, parts_.back().end});
    if (held.size() == 0) continue;
    mark(step, shard, named);
    std::size_t part = 0;
    for (std::size_t word = 0; word < marks_.size(); ++word) {
      for (std::uint64_t left = marks_[word]; left != 0; left &= left - 1) {
        const std::int64_t row =
            rows.begin + static_cast<std::int64_t>(word) * kBits + std::countr_zero(left);
        if (row < held.begin || row >= held.end) continue;
        while (row >= parts_[part].end) ++part;
        list_[at(filled_[part]++)] = static_cast<std::int32_t>(row - held_);
      }
    }
  }
  return list_;
}

}  // namespace ringlet::nn
