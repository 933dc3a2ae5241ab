// PeerAccess: the memory of all ranks, read and written in place. What a transport offers whose
// ranks share an address space, GPUs that reach each other's memory, or a piece of memory.
//
//   open(mine)    every rank shows a range and waits until all have
//   reduce(...)   everybody's range, from begin to end, becomes one there
//   close()       every rank waits until all have come here; then its range is its own again
//
// What a rank wrote before a meeting, the others may read after it. Between open() and close() a
// rank must keep to the elements that the strategy gives it: no rank may write what another one
// reads.
//
// Memory that is not written and outlives the reading needs no close(): a window that the strategy
// keeps, for example, of which there are two in turn. Then leave() says that this rank has read
// what it wanted. At open() number n + 2 a rank may overwrite what it showed at number n.
//
// Threads may show any memory. Processes may show memory of Transport::allocator(). What lies
// elsewhere is copied to and from a window that each rank has (window()).
//
// Stream-ordered like Transport::exchange: on a GPU the meetings order the streams, not the data.
#pragma once

#include <cstdint>
#include <exception>

#include "comm/core/flat.h"
#include "kernels/reduce.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

class PeerAccess {
 public:
  virtual ~PeerAccess() = default;

  /// Bytes of a window; 0 where there is none, since any memory can be shown.
  virtual std::int64_t window_bytes() const { return 0; }
  /// Whether open() takes this memory. Either all ranks show such memory or none does.
  virtual bool can_show(const View&) { return true; }
  /// Memory that can always be shown: this rank's two windows in turn, call by call, in the same
  /// turn on all ranks.
  virtual View window() { return {}; }

  /// `mine` is rank-1 and of the same type and length on every rank. Throws as exchange() does, and
  /// ContractError where the stream's device does not reach another rank's memory.
  virtual void open(Stream& stream, const View& mine) = 0;
  /// open() where every rank can show its memory. Else nothing is open, and false on all ranks.
  virtual bool open_where_all_can(Stream& stream, const View& mine) {
    if (!can_show(mine)) return false;
    open(stream, mine);
    return true;
  }
  /// Every rank waits until all have come here.
  virtual void meet(Stream& stream) = 0;
  virtual void close(Stream& stream) = 0;
  virtual void leave(Stream& stream) = 0;
  /// Ends a session after an error: aborts the world, then settle().
  virtual void abandon(Stream& stream, const char* reason) noexcept = 0;
  /// Returns when no other rank reads what this one has shown. To be called before that memory is
  /// freed.
  virtual void settle() noexcept = 0;

  /// [begin, end) of every rank's range = op of all ranks' [begin, end), in the order of ranks.
  virtual void reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin,
                              std::int64_t end) = 0;
  /// y = x; `y` is memory that this rank shows, and alone writes.
  virtual void copy(Stream& stream, const ConstView& x, const View& y) = 0;
  /// mine = op of the others' ranges and, for this rank, of `mine`, in the order of ranks; `mine`
  /// is memory of this rank alone.
  virtual void reduce_into(Stream& stream, ReduceOp op, const View& mine) = 0;
  /// mine, and this rank's range from `begin` on = op of the others' ranges from there on and, for
  /// this rank, of `mine`; in the order of ranks.
  virtual void reduce_part(Stream& stream, ReduceOp op, std::int64_t begin, const View& mine) = 0;
  /// [begin, end) of this rank's range = op of all ranks' [begin, end), in the order of ranks that
  /// ends with this one: ((x_r+1 + x_r+2) + ...) + x_r, as a ring adds.
  virtual void reduce_own(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) = 0;
  /// mine = the range of `rank` from `begin` on. reduce_part() has counted these bytes as moved.
  virtual void read(Stream& stream, int rank, std::int64_t begin, const View& mine) = 0;

  /// [begin, end) of the range of `root` = op of all ranks' [begin, end), in the order of ranks
  /// that begins with `root`.
  virtual void reduce_to(Stream& stream, ReduceOp op, int root, std::int64_t begin,
                         std::int64_t end) = 0;
  /// [begin, end) of every other rank's range = that of `root`.
  virtual void spread(Stream& stream, int root, std::int64_t begin, std::int64_t end) = 0;

  /// The longest that a rank shares, in bytes.
  static constexpr std::int64_t kLongestShared = 4096;
  /// Whether share() is for `bytes` of this stream: not for more, not for more than kMaxReduced
  /// ranks, and not where the stream works behind the host. The same on all ranks.
  virtual bool shares(const Stream& /*stream*/, std::int64_t /*bytes*/) const { return false; }
  /// A copy to a window and open() at once, for short data: every rank shows a copy of its `bytes`
  /// at `data`, as many on all ranks, and waits until all have. `data` is null where nobody reads
  /// this rank's. It ends with leave(), and counts as an open().
  virtual void share(Stream& /*stream*/, const void* /*data*/, std::int64_t /*bytes*/) {}
  /// mine = op of what the others share from element `begin` on and, for this rank, of `mine`; in
  /// the order of ranks that begins with `first`.
  virtual void reduce_shared(Stream& /*stream*/, ReduceOp /*op*/, std::int64_t /*begin*/,
                             const Flat& /*mine*/, int /*first*/) {}
  /// mine = what `rank` shares, from element `begin` on.
  virtual void read_shared(Stream& /*stream*/, int /*rank*/, std::int64_t /*begin*/,
                           const View& /*mine*/) {}
};

/// A session of step(), which is abandoned where that throws: also by who breaks off at the meeting
/// that opens it, since it has shown its memory already. Returns what step() returns.
template <class Step>
auto with_session(PeerAccess& peers, Stream& stream, Step step) {
  try {
    return step();
  } catch (const std::exception& error) {
    peers.abandon(stream, error.what());
    throw;
  }
}

/// A session in which body() does what the strategy does, and which it ends with close() or
/// leave().
template <class Body>
void with_peers(PeerAccess& peers, Stream& stream, const View& mine, Body body) {
  with_session(peers, stream, [&] {
    peers.open(stream, mine);
    body();
  });
}

/// The same where all ranks can show their memory; else false on all of them.
template <class Body>
bool with_peers_where_all_can(PeerAccess& peers, Stream& stream, const View& mine, Body body) {
  return with_session(peers, stream, [&] {
    if (!peers.open_where_all_can(stream, mine)) return false;
    body();
    return true;
  });
}

/// The same with data that the ranks share, which body() reads.
template <class Body>
void with_shared(PeerAccess& peers, Stream& stream, const void* data, std::int64_t bytes,
                 Body body) {
  with_session(peers, stream, [&] {
    peers.share(stream, data, bytes);
    body();
    peers.leave(stream);
  });
}

}  // namespace ringlet::comm
