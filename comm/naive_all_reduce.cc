#include "comm/naive_all_reduce.h"

namespace ringlet::comm {

void NaiveAllReduce::sum(Stream& stream, View data) {
  if (rank() != 0) {
    transport().send(stream, 0, data);
    transport().receive(stream, 0, data);
    return;
  }
  for (int other = 1; other < size(); ++other) {
    transport().receive(stream, other, data, Combine::add);
  }
  for (int other = 1; other < size(); ++other) transport().send(stream, other, data);
}

std::optional<std::int64_t> NaiveAllReduce::bytes_sent(std::int64_t count) const {
  const std::int64_t messages = rank() == 0 ? size() - 1 : 1;
  return messages * count * size_of(DType::f32);
}

}  // namespace ringlet::comm
