#include "comm/all_reduce/naive.h"

namespace ringlet::comm {

PathCost NaiveAllReduce::path_cost(int ranks, double bytes) {
  const double others = ranks - 1;
  return {2 * others, 2 * others * bytes, others * bytes};
}

LevelCosts NaiveAllReduce::level_costs(int machines, int each, double bytes) {
  return {.between = path_cost((machines - 1) * each + 1, bytes), .inside = path_cost(each, bytes)};
}

void NaiveAllReduce::run(Stream& stream, View data, ReduceOp op) {
  if (rank() != 0) {
    transport().send(stream, 0, data);
    transport().receive(stream, 0, data);
    return;
  }
  for (int other = 1; other < size(); ++other) {
    transport().receive(stream, other, data, combine_of(op));
  }
  finish(stream, data, op);
  for (int other = 1; other < size(); ++other) transport().send(stream, other, data);
}

std::optional<std::int64_t> NaiveAllReduce::elements_sent(std::int64_t count) const {
  const std::int64_t messages = rank() == 0 ? size() - 1 : 1;
  return messages * count;
}

}  // namespace ringlet::comm
