#include "comm/all_reduce/ring.h"

#include "comm/all_reduce/parts.h"

namespace ringlet::comm {

void RingAllReduce::run(Stream& stream, View data, ReduceOp op) {
  const int r = rank();
  const int next = (r + 1) % size();
  const int previous = (r + size() - 1) % size();
  for (int step = 0; step < size() - 1; ++step) {  // reduce-scatter
    transport().exchange(stream, next, chunk(data, r - step), previous, chunk(data, r - step - 1),
                         combine_of(op));
  }
  finish(stream, chunk(data, r + 1), op);
  for (int step = 0; step < size() - 1; ++step) {  // all-gather
    transport().exchange(stream, next, chunk(data, r + 1 - step), previous, chunk(data, r - step));
  }
}

View RingAllReduce::chunk(const View& data, int index) const {
  const int c = (index % size() + size()) % size();
  return data.slice(part_begin(data.count(), size(), c), part_begin(data.count(), size(), c + 1));
}

std::optional<std::int64_t> RingAllReduce::elements_sent(std::int64_t count) const {
  if (size() == 1) return 0;
  const auto length = [this, count](int index) {
    const int c = index % size();
    return part_begin(count, size(), c + 1) - part_begin(count, size(), c);
  };
  return 2 * count - length(rank() + 1) - length(rank() + 2);
}

}  // namespace ringlet::comm
