// Field: float numbers of each sample under a name, beside its pixels or instead of them: what a
// model is given, or what it is to find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ringlet::data {

/// The most of a data set.
inline constexpr std::size_t kMostFields = 8;

struct FieldSpec {
  std::string name;
  std::vector<std::int64_t> extents;  ///< of one sample, at most three: {4}, {1, 28, 28}
  std::int64_t numbers() const {      ///< of one sample
    std::int64_t product = 1;
    for (const std::int64_t extent : extents) product *= extent;
    return product;
  }
  /// What is wrong with it; null: nothing. A batch has tensors of its own.
  const char* problem() const;
};

/// With its numbers, [N, extents...] row-major.
struct Field : FieldSpec {
  Field(std::string the_name, std::vector<std::int64_t> the_extents, std::vector<float> the_values)
      : FieldSpec{std::move(the_name), std::move(the_extents)}, values(std::move(the_values)) {}
  std::vector<float> values;
};

}  // namespace ringlet::data
