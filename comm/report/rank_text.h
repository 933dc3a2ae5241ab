// How messages name ranks.
#pragma once

#include <string>
#include <vector>

namespace ringlet::comm {

/// "rank 2", "ranks 0, 1 and 3"
std::string text_of(const std::vector<int>& ranks);
/// "process 2", "processes 0, 1 and 3"
std::string text_of_processes(const std::vector<int>& processes);

/// What each rank has, equal ones together: "ranks 0 and 1 have 64, rank 2 has 128".
std::string text_of_values(const std::vector<std::string>& value_of_rank);

}  // namespace ringlet::comm
