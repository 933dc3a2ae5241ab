#include "comm/ring_all_reduce.h"

#include <algorithm>

namespace ringlet::comm {

void RingAllReduce::sum(Stream& stream, View data) {
  const int r = rank();
  const int next = (r + 1) % size();
  const int previous = (r + size() - 1) % size();
  for (int step = 0; step < size() - 1; ++step) {  // reduce-scatter
    transport().exchange(stream, next, chunk(data, r - step), previous, chunk(data, r - step - 1),
                         Combine::add);
  }
  for (int step = 0; step < size() - 1; ++step) {  // all-gather
    transport().exchange(stream, next, chunk(data, r + 1 - step), previous, chunk(data, r - step));
  }
}

std::int64_t RingAllReduce::border(std::int64_t count, int index) const {
  return index * (count / size()) + std::min<std::int64_t>(index, count % size());
}

View RingAllReduce::chunk(const View& data, int index) const {
  const int c = (index % size() + size()) % size();
  return data.slice(border(data.count(), c), border(data.count(), c + 1));
}

std::optional<std::int64_t> RingAllReduce::bytes_sent(std::int64_t count) const {
  if (size() == 1) return 0;
  const auto length = [this, count](int index) {
    const int c = index % size();
    return border(count, c + 1) - border(count, c);
  };
  return (2 * count - length(rank() + 1) - length(rank() + 2)) * size_of(DType::f32);
}

}  // namespace ringlet::comm
