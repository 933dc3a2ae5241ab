// What all ranks must agree on before they start: a list of (name, value), compared entry by entry.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ringlet::comm {

/// Anything that must be equal on all ranks: shapes, buckets, hyper-parameters, versions.
using Plan = std::vector<std::pair<std::string, std::string>>;

/// The plan as one text, and back. Names and values may hold anything but zero bytes. A text that
/// breaks off gives what there is.
std::string to_text(const Plan& plan);
Plan plan_of(const std::string& text);

/// The first entry that differs between the plans of rank 0, 1, ..., and who has what, for the
/// user; empty if all are equal.
std::string find_difference(const std::vector<std::string>& text_of_rank);

}  // namespace ringlet::comm
