#include "comm/all_reduce/collectives.h"

#include <algorithm>

#include "base/error.h"
#include "comm/all_reduce/needs.h"
#include "comm/all_reduce/parts.h"
#include "comm/all_reduce/ring.h"
#include "kernels/elementwise.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

/// Access to the ranks' memory, where that is faster than messages: between processors, for data
/// that are not few. `data`: all that is shared out, as long on every rank. Null: messages, as
/// where some rank's memory cannot be shown.
PeerAccess* peers_for(Transport& transport, Stream& stream, const View& data) {
  constexpr std::int64_t kFew = 16 << 10;
  const bool is_for_processors = stream.in_order_with_host() && transport.size() > 1;
  if (!is_for_processors || data.bytes() < kFew || !has(transport, Needs::peer_access)) return {};
  return transport.peer_access();
}

/// The same for data that are few: null where they do not fit a board (PeerAccess::share()).
/// `bytes`: what a rank shows.
PeerAccess* peers_for_short(Transport& transport, Stream& stream, std::int64_t bytes) {
  if (transport.size() == 1) return {};
  PeerAccess* const peers = transport.peer_access();
  return peers != nullptr && peers->shares(stream, bytes) ? peers : nullptr;
}

/// Elements [begin, end), of which each rank has its own.
struct Part {
  std::int64_t begin, end;
};
/// As a reduce_scatter() cuts `count` elements.
Part own_part(const Transport& transport, std::int64_t count) {
  const int p = transport.size(), rank = transport.rank();
  return {part_begin(count, p, rank), part_begin(count, p, rank + 1)};
}
/// Of whole pairs of cache lines, whatever the type: a broadcast's data are bytes.
Part own_lines(const Transport& transport, const View& data) {
  const std::int64_t each = 128 / size_of(data.dtype()), count = data.count();
  const Part part = own_part(transport, (count + each - 1) / each);
  return {std::min(each * part.begin, count), std::min(each * part.end, count)};
}

/// work(peers) on the ranks' memory, between two meetings. False on all ranks where that is not to
/// be had (peers_for()).
template <class Work>
bool through_memory(Transport& transport, Stream& stream, const View& data, Work work) {
  PeerAccess* const peers = peers_for(transport, stream, data);
  if (peers == nullptr) return false;
  return with_peers_where_all_can(*peers, stream, data, [&] {
    work(*peers);
    peers->close(stream);
  });
}

/// Whether a sum in the order of the ring has the ring's bits, which rounds narrow floats with each
/// message.
bool adds_alike(int ranks, DType dtype) {
  return ranks == 2 || dtype == DType::f32 || dtype == DType::i32;
}

}  // namespace

void broadcast(Transport& transport, Stream& stream, int root, View data) {
  require(0 <= root && root < transport.size(), "broadcast", "the root is a rank of the world");
  const int rank = transport.rank();
  if (PeerAccess* const peers = peers_for_short(transport, stream, data.bytes())) {
    return with_shared(*peers, stream, rank == root ? data.data() : nullptr, data.bytes(), [&] {
      if (rank != root) peers->read_shared(stream, root, 0, data);
    });
  }
  const View all = flat(data).view();
  const bool is_done = through_memory(transport, stream, all, [&](PeerAccess& peers) {
    const auto [begin, end] = own_lines(transport, all);
    peers.spread(stream, root, begin, end);
  });
  if (!is_done) broadcast_by_tree(transport, stream, root, data);
}

void broadcast_by_tree(Transport& transport, Stream& stream, int root, View data) {
  const int p = transport.size();
  const int position = (transport.rank() - root + p) % p;  // in the tree, whose root has position 0
  const auto rank_at = [root, p](int other_position) { return (other_position + root) % p; };

  int bit = 1;  // the lowest bit of my position: my parent lacks it, my children have a lower one
  while (bit < p && (position & bit) == 0) bit *= 2;
  if (position != 0) transport.receive(stream, rank_at(position - bit), data);
  for (bit /= 2; bit > 0; bit /= 2) {
    if (position + bit < p) transport.send(stream, rank_at(position + bit), data);
  }
}

void finish_reduction(Stream& stream, View data, ReduceOp op, int ranks) {
  if (op != ReduceOp::mean || ranks == 1) return;
  const ConstView xs[] = {data};
  ringlet::reduce(stream, op, xs, {&data, 1}, {.divisor = ranks});
}

void reduce(Transport& transport, Stream& stream, int root, View data, ReduceOp op) {
  require(0 <= root && root < transport.size(), "reduce", "the root is a rank of the world");
  const int rank = transport.rank();
  if (PeerAccess* const peers = peers_for_short(transport, stream, data.bytes())) {
    return with_shared(*peers, stream, rank == root ? nullptr : data.data(), data.bytes(), [&] {
      if (rank == root) peers->reduce_shared(stream, op, 0, flat(data), root);
    });
  }
  const View all = flat(data).view();
  const bool is_done = through_memory(transport, stream, all, [&](PeerAccess& peers) {
    const auto [begin, end] = own_lines(transport, all);
    peers.reduce_to(stream, op, root, begin, end);
  });
  if (!is_done) reduce_by_tree(transport, stream, root, data, op);
}

void reduce_by_tree(Transport& transport, Stream& stream, int root, View data, ReduceOp op) {
  const int p = transport.size();
  const int position = (transport.rank() - root + p) % p;  // in the tree, whose root has position 0
  const auto rank_at = [root, p](int other_position) { return (other_position + root) % p; };

  int bit = 1;
  for (; bit < p && (position & bit) == 0; bit *= 2) {
    if (position + bit < p)
      transport.receive(stream, rank_at(position + bit), data, combine_of(op));
  }
  if (position != 0) {
    transport.send(stream, rank_at(position - bit), data);
  } else {
    finish_reduction(stream, data, op, p);
  }
}

void reduce_scatter(Transport& transport, Stream& stream, View data, ReduceOp op) {
  const int p = transport.size();
  const int rank = transport.rank();
  if (adds_alike(p, data.dtype())) {
    if (PeerAccess* const peers = peers_for_short(transport, stream, data.bytes())) {
      return with_shared(*peers, stream, data.data(), data.bytes(), [&] {
        const auto [begin, end] = own_part(transport, data.count());
        peers->reduce_shared(stream, op, begin, flat(data.slice(begin, end)), (rank + 1) % p);
      });
    }
    const bool is_done = through_memory(transport, stream, data, [&](PeerAccess& peers) {
      const auto [begin, end] = own_part(transport, data.count());
      peers.reduce_own(stream, op, begin, end);
    });
    if (is_done) return;
  }
  ring_reduce_scatter(transport, stream, data, op, rank);
}

void all_gather(Transport& transport, Stream& stream, ConstView mine, View all) {
  const int p = transport.size();
  const int rank = transport.rank();
  const std::int64_t count = mine.count();
  require(all.count() == p * count && all.dtype() == mine.dtype(), "all_gather",
          "the result has as many elements as all ranks' parts together");
  const auto part = [&all, count](int of) { return all.slice(of * count, (of + 1) * count); };
  if (mine.data() != part(rank).data()) copy(stream, mine, part(rank));
  if (PeerAccess* const peers = peers_for_short(transport, stream, mine.bytes())) {
    return with_shared(*peers, stream, mine.data(), mine.bytes(), [&] {
      for (int other = 0; other < p; ++other) {
        if (other != rank) peers->read_shared(stream, other, 0, part(other));
      }
    });
  }
  if (PeerAccess* const peers = peers_for(transport, stream, all)) {
    const auto read_others = [&] {
      for (int step = 1; step < p; ++step) {
        const int other = (rank + step) % p;
        peers->read(stream, other, 0, part(other));
      }
      transport.count_moved((p - 1) * mine.bytes());
      peers->close(stream);
    };
    if (with_peers_where_all_can(*peers, stream, part(rank), read_others)) return;
  }
  for (int step = 1; step < p; ++step) {
    const int above = (rank + step) % p;
    const int below = (rank + p - step) % p;
    transport.exchange(stream, above, mine, below, part(below));
  }
}

void all_to_all(Transport& transport, Stream& stream, ConstView out, View in) {
  const int p = transport.size();
  const int rank = transport.rank();
  require(out.count() == in.count() && out.dtype() == in.dtype() && out.count() % p == 0,
          "all_to_all", "both have the same type and length, a multiple of the ranks");
  const std::int64_t count = out.count() / p;
  const auto part = [count](const auto& of, int index) {
    return of.slice(index * count, (index + 1) * count);
  };
  copy(stream, part(out, rank), part(in, rank));
  if (PeerAccess* const peers = peers_for_short(transport, stream, out.bytes())) {
    return with_shared(*peers, stream, out.data(), out.bytes(), [&] {
      for (int other = 0; other < p; ++other) {
        if (other != rank) peers->read_shared(stream, other, rank * count, part(in, other));
      }
    });
  }
  const View shown(const_cast<void*>(out.address()), {out.count()}, out.dtype());  // to be read
  PeerAccess* const peers = peers_for(transport, stream, shown);
  if (peers != nullptr && peers->window_bytes() > 0) {  // else messages are read where they lie
    const auto read_others = [&] {
      for (int step = 1; step < p; ++step) {
        const int other = (rank + step) % p;
        peers->read(stream, other, rank * count, part(in, other));
      }
      transport.count_moved((p - 1) * count * size_of(out.dtype()));
      peers->close(stream);
    };
    if (with_peers_where_all_can(*peers, stream, shown, read_others)) return;
  }
  for (int step = 1; step < p; ++step) {
    const int above = (rank + step) % p;
    const int below = (rank + p - step) % p;
    transport.exchange(stream, above, part(out, above), below, part(in, below));
  }
}

void barrier(Transport& transport, Stream& stream) {
  const int p = transport.size();
  const View nothing(nullptr, {0}, DType::u8);
  if (PeerAccess* const peers = peers_for_short(transport, stream, 0)) {
    return with_shared(*peers, stream, nullptr, 0, [] {});
  }
  for (int distance = 1; distance < p; distance *= 2) {
    const int above = (transport.rank() + distance) % p;
    const int below = (transport.rank() + p - distance) % p;
    transport.exchange(stream, above, nothing, below, nothing);
  }
}

}  // namespace ringlet::comm
