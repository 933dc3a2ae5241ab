#include "bench/all_reduce/collective.h"

#include <algorithm>
#include <array>

namespace ringlet::bench {

namespace {

using Id = CollectiveId;
using Place = NaturalPlace;

//  id, name, summary, reduces, has_root, has_parts, same_everywhere, place, bus_passes
constexpr std::array kCollectives{
    Collective{Id::all_reduce, "all-reduce", "every rank gets the sum of all", true, false, false,
               true, Place::in_place, 2},
    Collective{Id::all_gather, "all-gather", "every rank gets the parts of all", false, false, true,
               true, Place::either, 1},
    Collective{Id::reduce_scatter, "reduce-scatter", "every rank gets a part of the sum", true,
               false, true, false, Place::in_place, 1},
    Collective{Id::broadcast, "broadcast", "every rank gets what the root has", false, true, false,
               true, Place::in_place, 0},
    Collective{Id::reduce, "reduce", "the root gets the sum of all", true, true, false, false,
               Place::in_place, 0},
    Collective{Id::all_to_all, "all-to-all", "every rank gets a part of each", false, false, true,
               false, Place::apart, 1},
    Collective{Id::send_recv, "send-recv", "every rank gets what the rank below has", false, false,
               false, false, Place::apart, 0}};

}  // namespace

std::span<const Collective> collectives() { return kCollectives; }

const Collective& collective_of(CollectiveId id) {
  return kCollectives[static_cast<std::size_t>(id)];
}

const Collective* find_collective(std::string_view name) {
  const auto* const found =
      std::find_if(kCollectives.begin(), kCollectives.end(),
                   [name](const Collective& collective) { return collective.name == name; });
  return found == kCollectives.end() ? nullptr : found;
}

}  // namespace ringlet::bench
