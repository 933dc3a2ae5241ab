// The ways of a strategy: what it costs over any link and for any bytes, so that somebody else can
// multiply. A path is linear in the bytes (comm/all_reduce/cost_model.h), so a way is what a single
// byte costs. A strategy that goes another way over another link has several; it takes the fastest.
#pragma once

#include <optional>
#include <vector>

#include "bench/simulation/quantities.h"
#include "comm/all_reduce/strategies.h"

namespace ringlet::bench {

/// Steps as they are, bytes and reduced bytes for each byte of a rank's data. On one machine all is
/// inside.
using Way = comm::LevelCosts;

/// Empty where the strategy has no schedule there (comm/schedule/recording.h).
std::vector<Way> ways_of(const comm::Strategy& strategy, const Layout& layout);

/// Whether one is as the other but for the number of ranks on a single machine, or of machines. One
/// machine of as many ranks as each of the other's is like that, too.
bool is_like(const Layout& layout, const Layout& other);
/// Layouts like that of 2 to kMostRanks ranks, in their order: up to 32 each number of ranks or
/// machines, then eight in each doubling; and those of `also` that are like it.
std::vector<Layout> layouts_like(const Layout& layout, const std::vector<Layout>& also);

}  // namespace ringlet::bench
