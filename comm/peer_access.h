// PeerAccess: the memory of all ranks, read and written in place. What a transport offers whose
// ranks share an address space, or GPUs that reach each other's memory.
//
//   open(mine)    every rank shows a range and waits until all have
//   reduce(...)   everybody's range, from begin to end, becomes one there
//   close()       every rank waits until all have come here; then its range is its own again
//
// What a rank wrote before a meeting, the others may read after it. Between open() and close() a
// rank must keep to the elements that the strategy gives it: nobody may write what another one
// reads. Memory that is not written and outlives the session (a window that the strategy keeps, of
// which there are two in turn) needs no close(): leave() says that this rank has read what it
// wanted, and whoever comes to the open() after the next one may overwrite what it showed two
// before.
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

  /// `mine` is rank-1 and of the same type and length on every rank. Throws as exchange() does, and
  /// ContractError where the stream's device does not reach another rank's memory.
  virtual void open(Stream& stream, const View& mine) = 0;
  virtual void close(Stream& stream) = 0;
  virtual void leave(Stream& stream) = 0;
  /// Ends a session after an error: gives the world up and settles.
  virtual void abandon(Stream& stream, const char* reason) noexcept = 0;
  /// Returns when no other rank reads what this one has shown. Before that memory is given back.
  virtual void settle() noexcept = 0;

  /// [begin, end) of every rank's range = op of all ranks' [begin, end), in the order of ranks.
  virtual void reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin,
                              std::int64_t end) = 0;
  /// y = x, both of them memory of this rank alone.
  virtual void copy(Stream& stream, const ConstView& x, const View& y) = 0;
  /// mine = op of all ranks' ranges, in the order of ranks; `mine` is memory of this rank alone.
  virtual void reduce_into(Stream& stream, ReduceOp op, const View& mine) = 0;
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
