#include "bench/all_reduce/collective_call.h"

#include "base/error.h"
#include "base/trace.h"
#include "comm/all_reduce/parts.h"

namespace ringlet::bench {

namespace {

/// Every rank sends to the one above it. Entered in the recorder as what it is a part of: an
/// exchange between all ranks.
void send_recv(const CollectiveCall& call, comm::Communicator& ranks, Stream& stream,
               ConstView input, View result) {
  stream.run([&ranks, &stream, from = input.address(), to = result.address(),
              bytes = result.bytes(), name = call.name] {
    comm::Transport& transport = ranks.transport();
    const int size = transport.size(), rank = transport.rank();
    ScopedSpan span(stream.tracer(), name, "collective", bytes);
    transport.recorder().enter(comm::CollectiveKind::all_to_all, bytes, name);
    if (span.traces()) {
      span.details().call = transport.recorder().current().sequence;
      span.details().ranks = size;
    }
    try {
      transport.exchange(stream, (rank + 1) % size, ConstView(from, {bytes}, DType::u8),
                         (rank + size - 1) % size, View(to, {bytes}, DType::u8));
    } catch (const comm::Aborted&) {
      throw;
    } catch (...) {
      ranks.abort(message_of_current_exception());
      throw;
    }
    transport.recorder().leave();
  });
}

}  // namespace

void run(const CollectiveCall& call, comm::Communicator& ranks, Stream& stream,
         const ConstView& input, const View& result) {
  switch (call.collective.id) {
    case CollectiveId::all_reduce:
      return ranks.all_reduce(stream, result, call.name, call.op);
    case CollectiveId::all_gather:
      return ranks.all_gather(stream, input, result, call.name);
    case CollectiveId::reduce_scatter:
      return ranks.reduce_scatter(stream, result, call.name, call.op);
    case CollectiveId::broadcast:
      return ranks.broadcast(stream, call.root, result, call.name);
    case CollectiveId::reduce:
      return ranks.reduce(stream, call.root, result, call.name, call.op);
    case CollectiveId::all_to_all:
      return ranks.all_to_all(stream, input, result, call.name);
    case CollectiveId::send_recv:
      return send_recv(call, ranks, stream, input, result);
  }
}

OwnedElements owned_after(const CollectiveCall& call, int rank, int ranks, std::int64_t count) {
  if (call.collective.id == CollectiveId::reduce_scatter) {
    return {comm::part_begin(count, ranks, rank), comm::part_begin(count, ranks, rank + 1)};
  }
  const bool is_elsewhere = call.collective.id == CollectiveId::reduce && rank != call.root;
  return {0, is_elsewhere ? 0 : count};
}

TestPattern pattern_for(const Collective& collective, DType type, ReduceOp op, int rank,
                        int ranks) {
  return collective.reduces ? TestPattern(type, op, rank, ranks) : TestPattern(type, rank);
}

std::int64_t count_wrong(const CollectiveCall& call, const TestPattern& pattern, int rank,
                         int ranks, std::int64_t iteration, ConstView result) {
  const std::int64_t count = result.count(), part = count / ranks;
  /// Elements from `begin` on that should be those of another rank's input from `first` on.
  const auto wrong_of = [&](int from, std::int64_t begin, std::int64_t length, std::int64_t first) {
    const ConstView piece = result.slice(begin, begin + length);
    return pattern.count_wrong_of(from, iteration, piece.data(), piece.bytes(), first);
  };
  switch (call.collective.id) {
    case CollectiveId::all_reduce:
    case CollectiveId::reduce:
    case CollectiveId::reduce_scatter: {
      const auto [begin, end] = owned_after(call, rank, ranks, count);
      const ConstView mine = result.slice(begin, end);
      return pattern.count_wrong(iteration, mine.data(), mine.bytes(), begin);
    }
    case CollectiveId::broadcast:
      return wrong_of(call.root, 0, count, 0);
    case CollectiveId::send_recv:
      return wrong_of((rank + ranks - 1) % ranks, 0, count, 0);
    case CollectiveId::all_gather:
    case CollectiveId::all_to_all: {
      // Of all-to-all a rank gets the part of each that has its own number.
      const bool is_gathered = call.collective.id == CollectiveId::all_gather;
      std::int64_t wrong = 0;
      for (int from = 0; from < ranks; ++from) {
        wrong += wrong_of(from, from * part, part, is_gathered ? 0 : rank * part);
      }
      return wrong;
    }
  }
  return 0;
}

comm::PathCost path_cost_of(CollectiveId id, int ranks, double bytes) {
  const double others = (ranks - 1) * bytes / ranks, levels = comm::levels_of(ranks);
  switch (id) {
    case CollectiveId::all_reduce:
      return comm::cost_of_one_message(ranks, bytes);
    case CollectiveId::reduce_scatter:
      return {ranks - 1.0, others, others};
    case CollectiveId::all_gather:
    case CollectiveId::all_to_all:
      return {ranks - 1.0, others, 0};
    case CollectiveId::broadcast:
      return {levels, levels * bytes, 0};
    case CollectiveId::reduce:
      return {levels, levels * bytes, levels * bytes};
    case CollectiveId::send_recv:
      return {1, bytes, 0};
  }
  return {};
}

}  // namespace ringlet::bench
