#include "comm/all_reduce/doubling.h"

#include <bit>

namespace ringlet::comm {

DoublingAllReduce::DoublingAllReduce(Transport& transport)
    : AllReduce(transport),
      power_(static_cast<int>(std::bit_floor(static_cast<unsigned>(transport.size())))) {}

void DoublingAllReduce::run(Stream& stream, View data, ReduceOp op) {
  if (folds_in()) {
    transport().send(stream, rank() - power_, data);
    transport().receive(stream, rank() - power_, data);
    return;
  }
  if (has_fold()) transport().receive(stream, rank() + power_, data, combine_of(op));
  for (int distance = 1; distance < power_; distance *= 2) {
    const int partner = rank() ^ distance;
    transport().exchange(stream, partner, data, partner, data, combine_of(op));
  }
  finish(stream, data, op);
  if (has_fold()) transport().send(stream, rank() + power_, data);
}

std::optional<std::int64_t> DoublingAllReduce::elements_sent(std::int64_t count) const {
  const int steps = std::countr_zero(static_cast<unsigned>(power_));
  const std::int64_t messages = folds_in() ? 1 : steps + (has_fold() ? 1 : 0);
  return messages * count;
}

}  // namespace ringlet::comm
