#include "comm/core/part_transport.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace ringlet::comm {

namespace {

World world_of(const Transport& whole, const std::vector<int>& ranks) {
  const auto own = std::find(ranks.begin(), ranks.end(), whole.rank());
  require(own != ranks.end(), "PartTransport", "its own rank is one of the part's");
  const int rank = static_cast<int>(own - ranks.begin()), size = static_cast<int>(ranks.size());
  return {.rank = rank, .size = size, .machine_rank = rank, .machine_size = size};
}

}  // namespace

PartTransport::PartTransport(Transport& whole, std::vector<int> ranks, const CostModel& costs)
    : Transport(world_of(whole, ranks)), whole_(whole), ranks_(std::move(ranks)), costs_(costs) {}

}  // namespace ringlet::comm
