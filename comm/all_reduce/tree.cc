#include "comm/all_reduce/tree.h"

#include <bit>

#include "comm/all_reduce/collectives.h"

namespace ringlet::comm {

PathCost TreeAllReduce::path_cost(int ranks, double bytes) {
  const double levels = levels_of(ranks);
  return {2 * levels, 2 * levels * bytes, levels * bytes};
}

LevelCosts TreeAllReduce::level_costs(int machines, int each, double bytes) {
  if (!std::has_single_bit(static_cast<unsigned>(each))) {
    return {.between = path_cost(machines * each, bytes)};
  }
  return {.between = path_cost(machines, bytes), .inside = path_cost(each, bytes)};
}

void TreeAllReduce::run(Stream& stream, View data, ReduceOp op) {
  reduce_by_tree(transport(), stream, 0, data, op);
  broadcast_by_tree(transport(), stream, 0, data);
}

std::optional<std::int64_t> TreeAllReduce::elements_sent(std::int64_t count) const {
  int messages = rank() == 0 ? 0 : 1;
  for (int bit = 1; bit < size() && (rank() & bit) == 0; bit *= 2) {
    if (rank() + bit < size()) ++messages;
  }
  return messages * count;
}

}  // namespace ringlet::comm
