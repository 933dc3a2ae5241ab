#include "comm/all_reduce/doubling.h"

#include <bit>

namespace ringlet::comm {

void DoublingAllReduce::run_on_power(Stream& stream, const View& data, ReduceOp op) {
  for (int distance = 1; distance < power(); distance *= 2) {
    const int partner = rank() ^ distance;
    transport().exchange(stream, partner, data, partner, data, combine_of(op));
  }
  finish(stream, data, op);
}

PathCost DoublingAllReduce::path_cost(int ranks, double bytes) {
  const double levels = levels_of(power_of(ranks));
  return with_folds(ranks, bytes, {levels, levels * bytes, levels * bytes});
}

LevelCosts DoublingAllReduce::level_costs(int machines, int each, double bytes) {
  LevelCosts costs{.between = path_cost(machines, bytes), .inside = path_cost(each, bytes)};
  costs.between.bytes *= each;
  return costs;
}

std::int64_t DoublingAllReduce::elements_sent_on_power(std::int64_t count) const {
  return std::countr_zero(static_cast<unsigned>(power())) * count;
}

}  // namespace ringlet::comm
