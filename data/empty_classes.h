// Classes that no sample has. A class that is there by name alone is never learnt. Often a damaged
// label is why it is there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringlet::data {

/// The classes without a sample, in words: "10 to 199"; "Trouser, Bag"; of many the first few "and
/// 31 more". Empty where each of `class_names` has a sample. `labels`: 0 .. classes - 1.
std::string empty_classes(std::span<const std::int32_t> labels,
                          const std::vector<std::string>& class_names);

}  // namespace ringlet::data
