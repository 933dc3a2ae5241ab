// Values of targets that no sample has. One that is there by name alone is never learnt. Often a
// damaged file is why it is there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringlet::data {

/// The names without a sample, in words: "10 to 199"; "Trouser, Bag"; of many the first few "and
/// 31 more". Empty where each of `target_names` has a sample. `targets`: 0 to names - 1.
std::string unseen_targets(std::span<const std::int32_t> targets,
                           const std::vector<std::string>& target_names);

}  // namespace ringlet::data
