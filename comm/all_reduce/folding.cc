#include "comm/all_reduce/folding.h"

#include <bit>

namespace ringlet::comm {

FoldingAllReduce::FoldingAllReduce(Transport& transport)
    : AllReduce(transport), power_(power_of(transport.size())) {}

void FoldingAllReduce::run(Stream& stream, View data, ReduceOp op) {
  if (folds_in()) {
    transport().send(stream, rank() - power_, data);
    transport().receive(stream, rank() - power_, data);
    return;
  }
  if (has_fold()) transport().receive(stream, rank() + power_, data, combine_of(op));
  run_on_power(stream, data, op);
  if (has_fold()) transport().send(stream, rank() + power_, data);
}

std::optional<std::int64_t> FoldingAllReduce::elements_sent(std::int64_t count) const {
  if (folds_in()) return count;
  return elements_sent_on_power(count) + (has_fold() ? count : 0);
}

int FoldingAllReduce::power_of(int ranks) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
}

PathCost FoldingAllReduce::with_folds(int ranks, double bytes, const PathCost& on_power) {
  if (power_of(ranks) == ranks) return on_power;
  return {on_power.steps + 2, on_power.bytes + 2 * bytes, on_power.reduced_bytes + bytes};
}

}  // namespace ringlet::comm
