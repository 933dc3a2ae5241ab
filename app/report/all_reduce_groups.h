// The strategies of a comparison by engine, and those of an engine that stand out among them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/all_reduce/comparison.h"

namespace ringlet::app::report {

/// Series of one engine, run in the same way (as threads, or as processes); at least one.
using Group = std::vector<const bench::Series*>;

/// In the order in which they were measured.
std::vector<Group> groups_of(const bench::Comparison& comparison);

/// "openmpi", or "ringlet processes" where there are threads of it, too.
std::string name_of(const std::vector<Group>& groups, const Group& group);
/// "ring", or "ring (tcp)" where the group has several transports.
std::string name_in(const Group& group, const bench::Series& series);

/// The sizes that any of them was measured with, in ascending order.
std::vector<std::int64_t> sizes_in(const Group& group);
/// The quickest median of this size, or infinity.
double median_of(const bench::Series& series, std::int64_t bytes);

/// Without "auto", which only picks one of the others; all where nothing else was measured.
Group fixed_strategies(const Group& group);
/// The fixed strategy whose times over all sizes are nearest to the fastest ones.
const bench::Series& best_strategy(const Group& group);
/// The ring, over the best one's transport if it is there; null where none was measured.
const bench::Series* ring_of(const Group& group);

/// kBest, kBaseline for the ring, else kGrey.
int color_of(const Group& group, const bench::Series& series);

}  // namespace ringlet::app::report
