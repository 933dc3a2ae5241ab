#include "comm/all_reduce/ring.h"

#include "comm/all_reduce/collectives.h"
#include "comm/all_reduce/parts.h"

namespace ringlet::comm {

namespace {

/// Part `index` of `data` (parts.h), modulo the number of parts; it may be negative.
View chunk(const View& data, int parts, int index) {
  const int c = (index % parts + parts) % parts;
  return data.slice(part_begin(data.count(), parts, c), part_begin(data.count(), parts, c + 1));
}

}  // namespace

void ring_reduce_scatter(Transport& transport, Stream& stream, const View& data, ReduceOp op,
                         int own) {
  const int p = transport.size();
  const int next = (transport.rank() + 1) % p;
  const int previous = (transport.rank() + p - 1) % p;
  for (int step = 1; step < p; ++step) {
    transport.exchange(stream, next, chunk(data, p, own - step), previous,
                       chunk(data, p, own - step - 1), combine_of(op));
  }
  finish_reduction(stream, chunk(data, p, own), op, p);
}

void RingAllReduce::run(Stream& stream, View data, ReduceOp op) {
  const int p = size();
  const int next = (rank() + 1) % p;
  const int previous = (rank() + p - 1) % p;
  const int own = rank() + 1;
  ring_reduce_scatter(transport(), stream, data, op, own);
  for (int step = 0; step < p - 1; ++step) {  // all-gather
    transport().exchange(stream, next, chunk(data, p, own - step), previous,
                         chunk(data, p, own - step - 1));
  }
}

PathCost RingAllReduce::path_cost(int ranks, double bytes) {
  const double p = ranks, part = bytes / p;
  return {2 * (p - 1), 2 * (p - 1) * part, (p - 1) * part};
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
