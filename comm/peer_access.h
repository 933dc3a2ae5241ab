// PeerAccess: the memory of all ranks, read and written in place. What a transport offers whose
// ranks share an address space, GPUs that reach each other's memory, or a piece of memory.
//
//   open(mine)    every rank shows a range and waits until all have
//   reduce(...)   everybody's range, from begin to end, becomes one there
//   close()       every rank waits until all have come here; then its range is its own again
//
// What a rank wrote before a meeting, the others may read after it. Between open() and close() a
// rank must keep to the elements that the strategy gives it: nobody may write what another one
// reads. Memory that is not written and outlives the reading (a window that the strategy keeps, of
// which there are two in turn) needs no close(): leave() says that this rank has read what it
// wanted, and whoever comes to the open() after the next one may overwrite what it showed two
// before.
//
// Threads show whatever they like. Processes show memory that Transport::allocator() gave, and for
// what lies elsewhere a window that each rank has (window()): it is copied there and back.
//
// Stream-ordered like Transport::exchange: on a GPU the meetings order the streams, not the data.
#pragma once

#include <cstdint>
#include <exception>

#include "kernels/reduce.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

class PeerAccess {
 public:
  virtual ~PeerAccess() = default;

  /// Bytes of a window; 0 where there is none, since any memory can be shown.
  virtual std::int64_t window_bytes() const { return 0; }
  /// Whether open() takes it. What is shown must be of that kind on all ranks or on none.
  virtual bool can_show(const View&) { return true; }
  /// Memory that always can be shown: one window and the other in turn, call by call, the same on
  /// all ranks.
  virtual View window() { return {}; }

  /// `mine` is rank-1 and of the same type and length on every rank. Throws as exchange() does, and
  /// ContractError where the stream's device does not reach another rank's memory.
  virtual void open(Stream& stream, const View& mine) = 0;
  /// Every rank waits until all have come here.
  virtual void meet(Stream& stream) = 0;
  virtual void close(Stream& stream) = 0;
  virtual void leave(Stream& stream) = 0;
  /// Ends a session after an error: gives the world up and settles.
  virtual void abandon(Stream& stream, const char* reason) noexcept = 0;
  /// Returns when no other rank reads what this one has shown. Before that memory is given back.
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
  /// mine = the range of `rank` from `begin` on. What reduce_part() has counted as moved.
  virtual void read(Stream& stream, int rank, std::int64_t begin, const View& mine) = 0;
};

/// A session in which body() does what the strategy does, and which it ends with close() or
/// leave(); abandoned where it throws.
template <class Body>
void with_peers(PeerAccess& peers, Stream& stream, const View& mine, Body body) {
  try {
    peers.open(stream, mine);  // whoever breaks off here has shown its memory already
    body();
  } catch (const std::exception& error) {
    peers.abandon(stream, error.what());
    throw;
  }
}

}  // namespace ringlet::comm
