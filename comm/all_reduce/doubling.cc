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
  const double all = levels_of(machines * each), inside = levels_of(each), between = all - inside;
  return {.between = {between, between * bytes * each, between * bytes},
          .inside = {inside, inside * bytes, inside * bytes}};
}

std::int64_t DoublingAllReduce::elements_sent_on_power(std::int64_t count) const {
  return std::countr_zero(static_cast<unsigned>(power())) * count;
}

}  // namespace ringlet::comm
